---@meta nclua.cpu

---What only the CPU backend can do: show every step inside a collective, and make one come
---late. With a GPU its functions answer nil, a message and "ENOTSUP".
local cpu = {}

---What one rank did with one chunk on one channel. Ranks, channels, steps and calls count
---from 0.
---@class cpu.step
---@field rank integer
---@field channel integer
---@field step integer of this rank's part of the call on this channel; of a send or receive: slots
---@field call integer how many operations the communicator was given before this one
---@field kind string NCCL's primitive: "send", "recv_reduce_send", "recv_reduce_copy_send", …
---@field collective string "all_reduce", …
---@field algorithm string? "Ring", "Tree", "PAT"; nil for sends and receives
---@field protocol string "LL", "LL128", "Simple"
---@field from integer[] ranks that the chunk came from
---@field to integer[] ranks that it was sent to
---@field offset integer? bytes into the message, where a buffer holds a block a rank into that one; nil: it is in no buffer of the caller's
---@field offsets integer[]? of a chunk that is several equal pieces: their places
---@field bytes integer
---@field begin_ns integer CLOCK_MONOTONIC, as cuda.now_ns
---@field end_ns integer
---@field wait_ns integer of that time, waiting for other ranks
---@field delay_ns integer of that time, as `delay` told

---@class cpu.steps: cpu.step[] in the order in which they ended
---@field lost integer steps that came after `limit`

---Records the steps of this process, its ranks and all its communicators, while `fn` runs;
---`fn` must wait for what it enqueues. An error in `fn` is raised again.
---@param fn fun()
---@param options { limit: integer? }? steps kept (65536)
---@return cpu.steps? steps
---@return string? message
---@return string? code "ENOTSUP", "EBUSY": steps are being recorded already
function cpu.trace(fn, options) end

---@param options { limit: integer? }?
---@return true?
---@return string? message
---@return string? code
function cpu.start(options) end

---Ends what `start` began; without that the list is empty.
---@return cpu.steps? steps
---@return string? message
---@return string? code
function cpu.stop() end

---@class cpu.counters
---@field bytes_sent integer of messages, without the protocol's flags
---@field bytes_received integer
---@field bytes_reduced integer results of additions and the like
---@field wire_sent integer bytes sent with the flags
---@field slots_sent integer
---@field slots_received integer

---What this rank has moved for the communicator's collectives so far.
---@param comm nccl.comm
---@return cpu.counters? counters
---@return string? message
---@return string? code "ENOTSUP"
function cpu.counters(comm) end

---@class cpu.delayed what is left out stands for any
---@field us integer microseconds
---@field rank integer?
---@field step integer?
---@field channel integer?
---@field call integer?

---From now on these steps of this process come late, instead of those named before. Ranks
---that are forked take theirs from NCLUA_CPU_DELAY="rank:step:us[:channel[:call]];…", where
---* stands for any.
---@param list cpu.delayed[]? none: no step is delayed
---@return true?
---@return string? message
---@return string? code "ENOTSUP", "EINVAL": too many
function cpu.delay(list) end

return cpu
