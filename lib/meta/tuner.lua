---@meta nclua.tuner

---Tuner plugins: asked without any GPU, or, if it is nclua's own, steered while NCCL (or the
---CPU backend) uses the same file: another algorithm, protocol and channel count for every
---call, in one process, on one communicator.
local tuner = {}

---Opens a plugin as NCCL would, with the newest ABI of 2 to 6 that it exports. To steer,
---NCCL must use the very same file: set NCCL_TUNER_PLUGIN to the same path.
---@param path string
---@return tuner.plugin? plugin
---@return string? message
---@return string? code "no_library", "no_symbol"
function tuner.open(path) end

---@class tuner.plugin
---@field name string what the plugin calls itself
---@field abi_version integer
local plugin = {}

---From now on every call gets this cell, if it is available to the communicator. Raises for
---a plugin that is not nclua's.
---@param choice { collective: string?, algorithm: string, protocol: string, channels: integer? } no collective: all; channels 0: NCCL's own
---@return tuner.plugin
function plugin:force(choice) end

---From now on every call gets NCCL's own choice, whatever rules the environment has.
---@param collective string? nil: all
---@return tuner.plugin
function plugin:keep(collective) end

---Back to the rules of the environment, or to NCCL's own choice if there are none.
---@param collective string? nil: all
---@return tuner.plugin
function plugin:release(collective) end

---Calls since the plugin was loaded: all, with a forced choice, with a choice that was not
---available.
---@return { calls: integer, forced: integer, unavailable: integer }
function plugin:report() end

---Waits until the observation file holds all calls so far.
---@return tuner.plugin
function plugin:flush() end

---What a communicator would be to the plugin.
---@param world { ranks: integer, nodes: integer? }
---@return tuner.context? context
---@return string? message
---@return string? code "plugin": its init failed
function plugin:context(world) end

function plugin:close() end

---@class tuner.context
local context = {}

---Asks as NCCL would.
---@param collective string "all_reduce", …
---@param bytes integer the model's bytes
---@param costs table<string, table<string, number>> [algorithm][protocol] in µs, -1: unavailable
---@param options { ops: integer?, registered: integer? }?
---@return table? costs as the plugin left them: the choice is the cheapest
---@return integer|string channels 0: NCCL's own; or the message
---@return string? code "plugin": NCCL would fail the collective
function context:ask(collective, bytes, costs, options) end

function context:close() end

return tuner
