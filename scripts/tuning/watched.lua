--- The program that is profiled: some AllReduces of one size, by all devices of one
--- process, as whoever set the environment wants them.
local cuda = require("nclua.cuda")
local nccl = require("nclua.nccl")

local FP32 = 4 -- bytes

local watched = {}

local function open(comm, bytes)
  cuda.set_device(comm.device)
  return { comm = comm, stream = assert(cuda.stream()),
    buffer = assert(cuda.buffer("f32", bytes // FP32)):fill(1) }
end

---@param count integer devices
---@param bytes integer
---@param calls integer
function watched.main(count, bytes, calls)
  local devices = {}
  for i, comm in ipairs(assert(nccl.init_all(count))) do devices[i] = open(comm, bytes) end
  for _ = 1, calls do
    nccl.group(function()
      for _, one in ipairs(devices) do
        one.comm:all_reduce(one.buffer, one.buffer, "sum", one.stream)
      end
    end)
  end
  for _, one in ipairs(devices) do one.stream:sync() end
  for _, one in ipairs(devices) do
    assert(one.buffer:get(1) == count ^ calls, "wrong sum")
    one.comm:close()
  end
end

return watched
