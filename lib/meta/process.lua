---@meta nclua.process

---Child processes: an argument list (never a shell), captured output, a time limit, and
---what the child cost. Each child leads a process group of its own; it gets SIGTERM if
---nclua dies. Descriptors of nclua are not handed down.
local process = {}

---@class process.options
---@field env? table<string, string|number> variables to set; wins over `unset` and `clean`
---@field unset? string[] glob patterns (`"NCCL_*"`) of inherited variables to leave out
---@field clean? boolean inherit no variable at all
---@field cwd? string the child's directory
---@field stdin? string what the child reads (may contain NUL); default: nothing
---@field stdout? "capture"|"inherit"|"null"|{file: string} default: "capture"
---@field stderr? "capture"|"inherit"|"null"|"merge"|{file: string} default: "capture"
---@field on_line? fun(line: string, stream: "stdout"|"stderr") called for each captured line without its newline, as it comes; an error in it kills and reaps the child of `run`
---@field timeout_s? number then SIGTERM to the process group
---@field grace_s? number from SIGTERM to SIGKILL; default: 2
---@field trace? string a file for the trace of the child and its children (`nclua.trace`)
---@field affinity? integer[] CPUs to run on, from 0

---@class process.result
---@field ok boolean it exited with 0, in time
---@field exit_code? integer nil if a signal ended it
---@field signal? string "SIGKILL"; nil if it exited
---@field timed_out boolean
---@field stdout string what was captured; "" if it went elsewhere
---@field stderr string
---@field wall_us integer
---@field user_us integer CPU time of the child and of the children that it waited for
---@field sys_us integer
---@field trace? string the file, absolute; nil if nobody wrote one
---@field trace_error? string a part of it could not be read
---@field max_rss_bytes integer largest resident set; Linux counts nclua's own at the start

---Runs a command to its end. `argv[1]` is looked up in nclua's PATH (absolute entries)
---unless it has a slash. Children of the child that keep its output open are not waited for.
---@param argv (string|number)[]
---@param options? process.options
---@return process.result? result
---@return string? message it could not be started
---@return string? code an errno name, such as "ENOENT"
function process.run(argv, options) end

---Starts a command and returns. Its output is read, its time limit kept, only inside
---`poll` and `wait`: a child that writes more than a pipe holds waits for one of them.
---@param argv (string|number)[]
---@param options? process.options
---@return process.handle? handle
---@return string? message
---@return string? code
function process.spawn(argv, options) end

---@class process.handle
---@field pid integer
local handle = {}

---Waits for the end, or for `limit_s` seconds.
---@param limit_s? number
---@return process.result? result
---@return string? message it still runs
---@return string? code "ETIMEDOUT"
function handle:wait(limit_s) end

---The result if the child has ended, else nil. Does not wait.
---@return process.result?
function handle:poll() end

---Sends a signal to the child's process group.
---@param signal? string|integer "TERM" (default), "SIGKILL", 9
---@return boolean sent false if the child has ended
function handle:kill(signal) end

---Kills and reaps the child if it still runs. Also what `<close>` and collection do.
function handle:close() end

return process
