---@meta nclua.trace

---Records what runs on devices, the calls that brought it about, and ranges, into an SQLite
---file in Nsight Systems' export schema; see the page for the tables. On GPUs the trace
---plugin does it through CUPTI, on the CPU backend its own workers tell. Ranks that are
---forked while a trace runs are part of it.
local trace = {}

---@class trace.options
---@field file string an older trace there is replaced, anything else is not
---@field collectives? boolean a range around each call of a collective

---Begins. Nothing is opened before a device is in use, so ranks can still be forked.
---@param options trace.options
---@return true? ok
---@return string? message
---@return string? code "busy": a trace runs already
function trace.start(options) end

---Completes the file.
---@return string? file nil if no trace ran
---@return string? message what could not be written or read
---@return string? code
function trace.stop() end

---The file of the running trace.
---@return string?
function trace.file() end

---Adds traces to one, which is created if there is none: times, texts and processes keep
---apart what is apart.
---@param into string
---@param files string[]
---@return string? into
---@return string? message
---@return string? code
function trace.merge(into, files) end

---The trace plugin, for programs that nclua does not start: CUDA_INJECTION64_PATH,
---NVTX_INJECTION64_PATH, NCCL_PROFILER_PLUGIN.
---@return string? path
---@return string? message
---@return string? code "no_library"
function trace.plugin() end

return trace
