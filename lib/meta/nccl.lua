---@meta nclua.nccl

---Communicators and NCCL's collectives, on GPUs or on the CPU backend.
---
---Every function whose first argument is a communicator is also its method:
---`comm:all_reduce(x, x, "sum")`. Arguments are checked before the call: data types, element
---counts, devices, ranges, overlapping buffers. Collectives only enqueue, and return the
---communicator; a failure of the library raises "all_reduce: ncclInvalidUsage: ...". What
---makes something returns it, or nil, a message and a code such as "ncclSystemError".
---A stream argument may be nil: the default stream of the communicator's device. root, peer
---and rank count from 0, as in NCCL.
local nccl = {}

---@return string? version "2.28.3"
---@return string? message
---@return string? code
function nccl.version() end

---@class nccl.description
---@field version string "2.28.3"
---@field code integer NCCL's own number, 22803
---@field library string the file that was loaded
---@field backend "cuda"|"cpu"
---@field driver string version of CUDA that the driver supports, "12.8"
---@field calibration_file string? CPU backend: where this machine's figures are kept
---@field calibration_date string? CPU backend: when they were measured, "2026-01-31", or
---"shipped"

---@return nccl.description? info
---@return string? message
---@return string? code
function nccl.info() end

---What all ranks of a new communicator must hold: 128 bytes, made by one of them. A process
---that has made one can no longer fork ranks.
---@return string? id
---@return string? message
---@return string? code
function nccl.unique_id() end

---What a new communicator may be told; nil leaves the choice to the library. An older library
---refuses what it does not know.
---@class nccl.split_options
---@field blocking? boolean default: true. If false, see `ready`
---@field name? string for NCCL's log
---@field min_ctas? integer 1 to 64: at least so many channels
---@field max_ctas? integer 1 to 64
---@field cga_cluster_size? integer 0 to 8
---@field cta_policy? "default"|"efficiency"|"zero"
---@field net_name? string of the network module, "Socket"
---@field traffic_class? integer
---@field channels_per_net_peer? integer 1 to 64
---@field nvls_ctas? integer 1 to 64
---@field collnet? boolean
---@field nvlink_centric_sched? boolean
---@field split_share? boolean share resources with the parent
---@field shrink_share? boolean

---@class nccl.options: nccl.split_options
---@field id string of `unique_id`, the same on all ranks
---@field rank integer from 0
---@field count integer of ranks
---@field device? integer default: the current device

---@class nccl.shrink_options: nccl.split_options
---@field abort? boolean first end what runs on the parent

---Joins a communicator; returns when all ranks have. Inside `group` it is usable, and its
---failure known, when the group has ended.
---@param options nccl.options
---@return nccl.comm? comm
---@return string? message
---@return string? code
function nccl.comm(options) end

---One communicator a device, all in this process. Where there are several, their collectives
---must be called inside `group`, for no call may wait for one that has yet to be made.
---@param devices integer|integer[] how many of the first devices, or which ones
---@return nccl.comm[]? comms in order of rank
---@return string? message
---@return string? code
function nccl.init_all(devices) end

---Calls `fn`, and makes the calls to NCCL in it one. They may reach the streams only when the
---group ends. Returns what `fn` returns. If `fn` raises, the group ends with the calls made so
---far, and the error goes on. Groups nest. What is closed inside lives until the end.
---@generic T
---@param fn fun(): T...
---@return T...
function nccl.group(fn) end

---@alias nccl.operator "sum"|"prod"|"max"|"min"|"avg"|nccl.op

---In place if send and recv are the same.
---@param comm nccl.comm
---@param send cuda.buffer
---@param recv cuda.buffer as long as send
---@param op nccl.operator
---@param stream cuda.stream?
---@return nccl.comm comm
function nccl.all_reduce(comm, send, recv, op, stream) end

---@param comm nccl.comm
---@param send cuda.buffer
---@param recv cuda.buffer? as long as send, or the same; only the root needs it
---@param op nccl.operator
---@param root integer
---@param stream cuda.stream?
---@return nccl.comm comm
function nccl.reduce(comm, send, recv, op, root, stream) end

---@param comm nccl.comm
---@param send cuda.buffer? as long as recv, or the same; only the root needs it
---@param recv cuda.buffer
---@param root integer
---@param stream cuda.stream?
---@return nccl.comm comm
function nccl.broadcast(comm, send, recv, root, stream) end

---In place if send is this rank's part of recv.
---@param comm nccl.comm
---@param send cuda.buffer
---@param recv cuda.buffer comm.count times as long
---@param stream cuda.stream?
---@return nccl.comm comm
function nccl.all_gather(comm, send, recv, stream) end

---In place if recv is this rank's part of send.
---@param comm nccl.comm
---@param send cuda.buffer comm.count times as long as recv
---@param recv cuda.buffer
---@param op nccl.operator
---@param stream cuda.stream?
---@return nccl.comm comm
function nccl.reduce_scatter(comm, send, recv, op, stream) end

---Part j of send goes to rank j; part i of recv comes from rank i. Never in place.
---@param comm nccl.comm
---@param send cuda.buffer a multiple of comm.count elements
---@param recv cuda.buffer as long as send
---@param stream cuda.stream?
---@return nccl.comm comm
function nccl.all_to_all(comm, send, recv, stream) end

---In place if send is the root's part of recv.
---@param comm nccl.comm
---@param send cuda.buffer
---@param recv cuda.buffer? comm.count times as long; only the root needs it
---@param root integer
---@param stream cuda.stream?
---@return nccl.comm comm
function nccl.gather(comm, send, recv, root, stream) end

---In place if recv is the root's part of send.
---@param comm nccl.comm
---@param send cuda.buffer? comm.count times as long as recv; only the root needs it
---@param recv cuda.buffer
---@param root integer
---@param stream cuda.stream?
---@return nccl.comm comm
function nccl.scatter(comm, send, recv, root, stream) end

---Sends and receives that wait for each other belong into one `group`.
---@param comm nccl.comm
---@param buffer cuda.buffer
---@param peer integer
---@param stream cuda.stream?
---@return nccl.comm comm
function nccl.send(comm, buffer, peer, stream) end

---@param comm nccl.comm
---@param buffer cuda.buffer
---@param peer integer
---@param stream cuda.stream?
---@return nccl.comm comm
function nccl.recv(comm, buffer, peer, stream) end

---Calls of one communicator, checked once and then made in a loop in C: for measurements in
---which a Lua call's 0.2 µs would count. Calls `fn`, in which every collective of `comm` is
---checked and written down instead of made; streams named there are ignored. With `group`,
---so many calls each are one NCCL group.
---@param comm nccl.comm
---@param fn fun()
---@param options? { group: integer } of calls, which must be a multiple of it; default: 0
---@return nccl.burst burst
function nccl.burst(comm, fn, options) end

---An operator of this communicator: its ranks' elements times their scalars, summed. It ends
---with the communicator.
---@param comm nccl.comm
---@param scalar number
---@param dtype cuda.dtype of the buffers it is for
---@return nccl.op? op
---@return string? message
---@return string? code
function nccl.pre_mul_sum(comm, scalar, dtype) end

---A communicator of the ranks that name the same color, in the order of their keys. All ranks
---of `comm` must call this. Without options it takes its parent's. It outlives `comm`.
---@param comm nccl.comm
---@param color integer? from 0; nil: this rank takes no part
---@param key integer
---@param options? nccl.split_options
---@return nccl.comm? comm
---@return string? message
---@return string? code "NCCL_SPLIT_NOCOLOR" if color is nil, "ENOTSUP" before NCCL 2.18
function nccl.split(comm, color, key, options) end

---A communicator without some ranks, called by all others. It outlives `comm`.
---@param comm nccl.comm
---@param ranks integer[] to leave out
---@param options? nccl.shrink_options
---@return nccl.comm? comm
---@return string? message
---@return string? code "ENOTSUP" before NCCL 2.27
function nccl.shrink(comm, ranks, options) end

---Tells the library of a buffer, so that it may use it without copies. Ends with `close`, with
---the communicator, or when the buffer is closed.
---@param comm nccl.comm
---@param buffer cuda.buffer best of kind "nccl"
---@return nccl.registration? registration
---@return string? message
---@return string? code "ENOTSUP" before NCCL 2.19
function nccl.register(comm, buffer) end

---A symmetric window: all ranks must call this, with a buffer of kind "nccl" and one size.
---Ends as `register` does.
---@param comm nccl.comm
---@param buffer cuda.buffer
---@param options? { symmetric: boolean } default: true
---@return nccl.window? window
---@return string? message
---@return string? code "ENOTSUP" before NCCL 2.27, or where there can be none
function nccl.window(comm, buffer, options) end

---What went wrong with operations that were enqueued: "ncclSuccess", "ncclInProgress", or an
---error, after which only `abort` and `close` make sense.
---@param comm nccl.comm
---@return string result
function nccl.async_error(comm) end

---@class nccl.choice what carried a collective
---@field collective "broadcast"|"reduce"|"all_gather"|"reduce_scatter"|"all_reduce"
---@field algorithm "Tree"|"Ring"|"PAT"
---@field protocol "LL"|"LL128"|"Simple"
---@field channels integer that took part
---@field bytes integer elements of the call times their size, as NCCL's log counts
---@field source string "cpu backend"

---What was chosen for the last of the five collectives above that was enqueued (for those of a
---group: when it has ended). The CPU backend knows; NCCL tells it only in its log: nil,
---message, "ENOTSUP". nil alone: nothing had to be chosen yet, as with one rank.
---@param comm nccl.comm
---@return nccl.choice? choice
---@return string? message
---@return string? code
function nccl.last_choice(comm) end

---Whether a communicator with `blocking = false` has come up; until then only this,
---`async_error`, `abort` and `close` are for it. Raises if it failed.
---@param comm nccl.comm
---@return boolean
function nccl.ready(comm) end

---Waits for what was enqueued. Afterwards the communicator can only be closed.
---@param comm nccl.comm
---@return nccl.comm comm
function nccl.finalize(comm) end

---Ends what runs, and closes the communicator without waiting for anyone.
---@param comm nccl.comm
function nccl.abort(comm) end

---Waits for what was enqueued, then frees the communicator and all that depends on it: its
---operators, registrations, windows, and the graphs that captured it. Also `<close>`, but
---when that is reached by an error, it aborts. Garbage collection aborts, with a warning.
---@param comm nccl.comm
function nccl.close(comm) end

---@class nccl.comm: nccl.methods
---@field rank integer from 0
---@field count integer of ranks
---@field device integer
---@field name string? the option
local comm = {}

---A list of calls. It goes round: after the last call comes the first. Raises when one of
---the buffers, or the communicator, is closed.
---@class nccl.burst
---@field count integer of calls
---@field group integer calls of an NCCL group; 0: none
local burst = {}

---Makes the next calls. Also inside stream:capture, but not inside nccl.group.
---@param calls integer
---@param stream? cuda.stream
---@return nccl.burst self
function burst:enqueue(calls, stream) end

---Makes the next calls and waits for the stream. The clock runs from the first call, after
---all checks, until the stream is known to be empty.
---@param calls integer
---@param stream? cuda.stream
---@return number enqueue_us until the last call returned
---@return number wall_us
function burst:time(calls, stream) end

---The next call is the first again.
---@return nccl.burst self
function burst:rewind() end

function burst:close() end

---@class nccl.op
---@field dtype cuda.dtype
local op = {}

function op:close() end

---@class nccl.registration
local registration = {}

function registration:close() end

---@class nccl.window
local window = {}

function window:close() end
