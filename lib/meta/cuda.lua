---@meta nclua.cuda

---Devices, their memory, streams, events and graphs, on GPUs or on the CPU backend.
---
---What acquires something returns it, or nil, a message and a code; what uses something
---raises when the device reports an error ("fill: CUDA_ERROR_X: ...") and returns the object
---itself unless said. A stream argument may be nil: the device's default stream.
---New handles belong to the current device (`cuda.set_device`) and stay there.
local cuda = {}

---@alias cuda.dtype
---| "i8" | "u8" | "i32" | "u32" | "i64" | "u64"
---| "f16" | "bf16" | "f32" | "f64" | "f8e4m3" | "f8e5m2"

---Which backend this process uses; with a name, chooses one first, which raises once a
---device is in use.
---@param name? "auto"|"cpu"|"cuda"
---@return "cpu"|"cuda"
function cuda.backend(name) end

---@class cuda.device_description
---@field index integer from 0, as for `set_device`
---@field name string
---@field uuid string 8-4-4-4-12 hexadecimal digits; nvidia-smi puts "GPU-" before them
---@field pci_bus_id string
---@field memory_bytes integer
---@field compute_capability string "9.0"
---@field multiprocessors integer

---@return cuda.device_description[]? devices
---@return string? message no driver, or no device
---@return string? code
function cuda.devices() end

---Before a device is in use this touches none (a GPU's device files are counted), so that a
---script may ask before it forks ranks.
---@return integer
function cuda.device_count() end

---Where new handles are made from now on. The context is made when something needs it.
---@param index integer from 0
function cuda.set_device(index) end

---@return integer index of the current device, from 0
function cuda.device() end

---Waits for everything the current device was given.
function cuda.synchronize() end

---Whether all streams of a device are empty. Never waits, so it can be asked in a hang.
---@param device? integer default: the current one
---@return boolean
function cuda.is_idle(device) end

---@return integer ns of the monotonic clock
function cuda.now_ns() end

---@return string? version of CUDA that the driver supports, "12.8"
---@return string? message
---@return string? code
function cuda.driver_version() end

---Calls the function inside a named range, which profilers show; returns what it returns.
---@generic T
---@param name string
---@param fn fun(): T...
---@return T...
function cuda.range(name, fn) end

---@param name string
function cuda.range_push(name) end

---Raises if no range was pushed.
function cuda.range_pop() end

---Calls `fn` between two events on the stream and waits for the stream: the time the device
---took for what `fn` enqueued, with the gaps in which it waited for more. Cannot be captured.
---@param stream cuda.stream?
---@param fn fun()
---@return number duration_us
function cuda.time(stream, fn) end

---Allocates memory on the current device; its content is undefined. `kind = "nccl"` takes it
---from ncclMemAlloc, as buffer registration wants it.
---@param dtype cuda.dtype
---@param count integer of elements; may be 0
---@param options? { kind: "device"|"nccl" }
---@return cuda.buffer? buffer
---@return string? message
---@return string? code such as "CUDA_ERROR_OUT_OF_MEMORY"
function cuda.buffer(dtype, count, options) end

---Streams are independent of each other and of the default stream: order them by events.
---@param options? { priority: "normal"|"high" }
---@return cuda.stream? stream
---@return string? message
---@return string? code
function cuda.stream(options) end

---@param options? { timing: boolean } default: true
---@return cuda.event? event
---@return string? message
---@return string? code
function cuda.event(options) end

---Compiles a kernel of CUDA C++ for the current device, by NVRTC, and keeps the machine code
---in the user's cache folder. The name may be an expression, such as "axpy<float>"; headers
---of CUDA are found where a toolkit is installed. nil on the CPU backend ("ENOTSUP"), without
---NVRTC ("no_library"), and where the compiler objects: then the message is its text.
---@param source string
---@param name string
---@return cuda.kernel? kernel
---@return string? message
---@return string? code
function cuda.kernel(source, name) end

---Device memory. Without a stream argument a method comes after everything the device was
---given before, and is done when it returns. With one it is only enqueued there, and the
---order with other streams is the script's business. Indices count elements, from 1. Reading
---(`to_table`, `to_string`, `get`, `compare`) always waits. `#buffer` is its count.
---@class cuda.buffer
---@field dtype cuda.dtype
---@field count integer
---@field bytes integer
---@field device integer
---@operator len: integer
local buffer = {}

---Every element becomes the value, rounded to nearest even for floats. Raises if an integer
---dtype cannot hold it. For u64 the integer's 64 bits count: -1 is the largest.
---@param value number
---@param stream? cuda.stream
---@return cuda.buffer self
function buffer:fill(value, stream) end

---Element i (from 0) becomes (start + step * i) % modulus, exactly; by default 0, 1, 2, ...
---up to the largest power of two below which every integer is exact in the dtype (at most
---2^32), and again from 0.
---@param options? { start: integer?, step: integer?, modulus: integer? }
---@param stream? cuda.stream
---@return cuda.buffer self
function buffer:pattern(options, stream) end

---From a list of as many numbers, a string of as many bytes, or a buffer of the same dtype
---and count. Tables and strings are waited for, on the stream too, and cannot be captured.
---@param source number[]|string|cuda.buffer
---@param stream? cuda.stream
---@return cuda.buffer self
function buffer:copy_from(source, stream) end

---Integers for an integer dtype (u64 beyond 2^63 comes out negative), else floats.
---@param first? integer default: 1
---@param count? integer default: all from first on
---@return number[]
function buffer:to_table(first, count) end

---@return string bytes as they are in memory
function buffer:to_string() end

---A buffer on part of this one's memory. Closing the buffer closes its slices.
---@param first integer
---@param count integer
---@return cuda.buffer
function buffer:slice(first, count) end

---@param index integer
---@return number
function buffer:get(index) end

---@param index integer
---@param value number
---@param stream? cuda.stream
---@return cuda.buffer self
function buffer:set(index, value, stream) end

---Counts the elements that differ from those of the other buffer, or from a number. Two
---agree if they are equal, both NaN, or |x - y| <= tolerance * max(|x|, |y|). Compared on
---the device; waits for the answer.
---@param other cuda.buffer|number
---@param options? { tolerance: number?, stream: cuda.stream? }
---@return integer mismatches
---@return integer? first index of the first one
function buffer:compare(other, options) end

---Gives the memory back as soon as the device has no work any more that could use it; never
---waits. Closes graphs that captured the buffer. Also `<close>`.
function buffer:close() end

---@class cuda.stream
---@field device integer
local stream = {}

---Waits for everything that was enqueued.
---@return cuda.stream self
function stream:sync() end

---@return boolean done nothing is left to do
function stream:query() end

---What is enqueued from now on waits for the event's last record.
---@param event cuda.event
---@return cuda.stream self
function stream:wait(event) end

---Keeps the stream busy for so long: what is enqueued meanwhile begins at once when it ends.
---Raises "CUDA_ERROR_NOT_SUPPORTED" where no kernel can be compiled.
---@param microseconds integer up to 10 s
---@return cuda.stream self
function stream:spin(microseconds) end

---Calls `fn` and makes a graph of what it enqueues on the stream, and on streams that join
---by events, without running it. Inside, nothing may wait for the device. Buffers and
---communicators that took part are kept alive; closing one of them closes the graph. An
---error in `fn` ends the capture and is passed on.
---@param fn fun(stream: cuda.stream)
---@return cuda.graph? graph
---@return string? message
---@return string? code such as "CUDA_ERROR_STREAM_CAPTURE_INVALIDATED"
function stream:capture(fn) end

---Work that was enqueued is still done. Also `<close>`.
function stream:close() end

---@class cuda.event
---@field device integer
---@field timing boolean
local event = {}

---Marks the place after everything that is in the stream by now.
---@param stream? cuda.stream
---@return cuda.event self
function event:record(stream) end

---@return boolean done the last record was reached (true if there was none)
function event:query() end

---Waits until the last record is reached.
---@return cuda.event self
function event:sync() end

---Device time from this event to a later one; raises if one of them is not reached yet, was
---never recorded, or was made without timing.
---@param later cuda.event
---@return number duration_us
function event:elapsed_us(later) end

---Also `<close>`.
function event:close() end

---What a stream would have done, ready to be done again by one call.
---@class cuda.graph
---@field device integer
local graph = {}

---@param stream? cuda.stream
---@return cuda.graph self
function graph:launch(stream) end

---Also `<close>`.
function graph:close() end

---A kernel of the script's own.
---@class cuda.kernel
---@field name string
---@field device integer
---@field log string what the compiler said (warnings), often ""
local kernel = {}

---@class cuda.launch_options
---@field grid integer|integer[] blocks: one number, or up to three
---@field block integer|integer[] threads of a block, likewise
---@field shared_bytes integer? dynamic shared memory; default: 0
---@field stream cuda.stream? default: the device's; then the kernel is done on return

---Arguments are buffers (their address) and numbers with their type: `{ "i32", 7 }`. Where the
---driver can tell (12.4), their number and sizes are checked against the kernel's.
---@param options cuda.launch_options
---@param ... cuda.buffer|{ [1]: cuda.dtype, [2]: number }
---@return cuda.kernel self
function kernel:launch(options, ...) end

---The code is given back as soon as the device has no work any more. Closes graphs that
---captured a launch. Also `<close>`.
function kernel:close() end

return cuda
