---@meta nclua.logscan

---NCCL debug logs as a stream, in constant memory: lines are split and told apart in C,
---the voluminous kinds are counted there as distinct records, and a function hears of the
---rest. nclua.parse.nccl_log makes sense of it.
local logscan = {}

---@class logscan.new_options
---@field each? boolean operations, selections, connections and links also come as events

---@param options? logscan.new_options
---@return logscan.scanner
function logscan.new(options) end

---@class logscan.scanner
local scanner = {}

---@alias logscan.callback fun(topic: string, text: string, line: integer, thread: integer,
---is_glued: boolean, extra: any) topic: "text" is no log message, "issue" a cut one (extra:
---why), "warn" (extra: FILE:LINE), "init", "graph", "table", …; thread: for
---`scanner:thread`, 0 if unknown; is_glued: another message follows on the same line, so
---that this text may be cut. With `each`, extra is the index of the record.

---Reads a piece of the log; lines may be cut anywhere between two pieces. `fn` must not
---feed the scanner.
---@param bytes string
---@param fn logscan.callback
---@return logscan.scanner self
function scanner:feed(bytes, fn) end

---Ends the input: the last line may lack its newline.
---@param fn logscan.callback
---@return logscan.scanner self
function scanner:finish(fn) end

---@class logscan.record
---@field process? string "HOST:PID"
---@field device? integer of a selection
---@field times integer how many messages said this
---@field first_line integer
---@field last_line integer
---@field name? string operation, selection: "AllReduce"
---@field comm? string operation: "0x55aa00"
---@field elements? integer operation: a rank's
---@field datatype? integer operation: NCCL's number; likewise op, root
---@field ranks? integer operation
---@field in_place? boolean operation
---@field first_op_count? integer operation; likewise last_op_count
---@field bytes? integer selection, as printed
---@field algorithm? string selection, as printed; likewise protocol
---@field time_us? number selection, up to 2.23
---@field form? "plain"|"symmetric"|"copy_engine" selection
---@field from? integer connection: rank; likewise to
---@field via? string connection: "P2P/IPC"
---@field direction? "send"|"receive" connection
---@field kind? "ring"|"tree" link
---@field up? integer link: rank, -1 for none; likewise rank, down (a list)
---@field low? integer first channel; selection, connection, link
---@field high? integer last channel
---@field sample? string other: the first message of this shape

---@param kind "operation"|"selection"|"connection"|"link"|"other"
---@return logscan.record[] in order of first occurrence
function scanner:records(kind) end

---@param index integer from an event
---@return logscan.record
function scanner:record(index) end

---@param index integer from an event
---@return { host: string?, pid: integer, tid: integer, device: integer?, process: string? }
function scanner:thread(index) end

---@return { bytes: integer, lines: integer, messages: integer,
---topics: table<string, integer>, overflow: table<string, integer> } totals overflow:
---messages beyond the most distinct records, which were only counted
function scanner:totals() end

---Also `<close>`.
function scanner:close() end

return logscan
