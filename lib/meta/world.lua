---@meta nclua.world

---Forked ranks: the mechanism under nclua.ranks, which is what scripts use.
local world = {}

---@class world.options
---@field count integer 1 to 256
---@field output? "inherit"|"capture"|"null"|"files"
---@field log_dir? string for "files": rank-I.stdout and rank-I.stderr go there
---@field affinity? (integer|integer[])[] one entry a rank
---@field launcher? boolean only rank 0 is forked here, other processes bring theirs

---Forks `count` ranks; each runs `main` and ends, and never returns to the script. What the
---parent's frames have open is not closed in a rank: it is collected or simply dropped.
---@param options world.options
---@param main fun(rank: world.rank)
---@return world.world? running
---@return string? message
---@return string? code "busy": a device, a database, ... is in use, or this is a rank
function world.fork(options, main) end

---The world that torchrun, mpirun or srun made of this process, if it has more than one;
---NCLUA_LAUNCHER=none hides it.
---@return string? name nil, message, code: its variables contradict each other
---@return integer|string|nil index from 0
---@return integer|string|nil count
function world.launcher() end

---As a launcher's process other than 0: forks this process's rank and gives it into the
---hands of process 0, which watches it.
---@param options world.options with launcher=true
---@param main fun(rank: world.rank)
---@return world.member? member
---@return string? message
---@return string? code
function world.join(options, main) end

---Which rank is this process? Nothing outside a rank.
---@return integer? index
---@return integer? count
function world.current() end

---How many devices there seem to be, without touching one.
---@return integer count
---@return "cpu"|"cuda" backend
function world.devices() end

---CLOCK_MONOTONIC, without touching a device.
---@return integer
function world.now_us() end

---What this process last enqueued, completed and waited for.
---@return flight.rank
function world.recorder() end

---A world that runs, in the parent.
---@class world.world
---@field count integer
local running = {}

---The next event, waiting `timeout_ms` at most; nil if there is none. Ranks count from 0.
---* "row", rank, section, row
---* "check", rank, name, ok, details
---* "error", rank, message, traceback
---* "finished", rank
---* "output", rank, text, "stdout"|"stderr"
---* "exit", rank, { exit_code | signal | lost, aborted, user_us, sys_us, max_rss_bytes }
---* "done": all have ended
---@param timeout_ms integer
---@return string? event
---@return any ...
function running:step(timeout_ms) end

---Orders all ranks to abort their communicators and exit.
function running:abort() end

---SIGKILL to all ranks that are left.
function running:kill() end

---A rank that a signal has ended.
---@return integer? index
function running:casualty() end

---@return integer[] pids
function running:pids() end

---A number that changes while any rank gets on, and whether one of them waits.
---@return integer progress
---@return boolean is_waiting
function running:progress() end

---@return flight.rank[]
function running:status() end

---Says what a launcher's other processes are told at the close; "failed" otherwise.
---@param is_good boolean
function running:settle(is_good) end

---Kills and reaps what is left. Also what `<close>` and collection do.
function running:close() end

---A launcher's process other than 0, while its rank runs.
---@class world.member
local member = {}

---Waits for the end; nil if it has not come.
---@param timeout_ms integer
---@return "good"|"failed"|nil
function member:step(timeout_ms) end

---Kills and reaps this process's rank if it is left.
function member:close() end

---The handle of a rank, in that rank.
---@class world.rank
---@field index integer from 0
---@field count integer
local rank = {}

---@param section string
---@param row table
function rank:emit(section, row) end

---@param name string
---@param ok any
---@param details? any
function rank:check(name, ok, details) end

---Sends at once what is buffered: rows wait for 64 KiB, or 0.2 s and another row.
function rank:flush() end

---Waits for all ranks.
function rank:barrier() end

---Rank 0's unique id, on all ranks.
---@param id? string on rank 0
---@return string id
function rank:exchange(id) end

---Pins this process to the CPUs near a GPU.
---@param ordinal integer as CUDA counts
---@return true? ok
---@return string? message the machine does not tell, or none of them is allowed
---@return string? code
function rank:pin_near_gpu(ordinal) end

---Sets or unsets a variable; raises once a device is in use.
---@param name string
---@param value? string
function rank:setenv(name, value) end

return world
