--- Several ranks in this process, one a device, for the tests of nclua.nccl.
local cuda = require("nclua.cuda")
local luaunit = require("luaunit")
local nccl = require("nclua.nccl")

local World = {}
World.__index = World

--- `ranks` communicators and streams; the rest of a test file works through them.
local function open(ranks)
  local comms = assert(nccl.init_all(ranks))
  local self = setmetatable({ count = ranks, comms = comms, streams = {} }, World)
  for i = 1, ranks do
    cuda.set_device(i - 1)
    self.streams[i] = assert(cuda.stream())
  end
  cuda.set_device(0)
  return self
end

function World:__close()
  for i = 1, self.count do
    self.comms[i]:close()
    self.streams[i]:close()
  end
end

--- A buffer on each rank's device; element i of rank r (from 0) is value(r, i), if given.
function World:buffers(dtype, count, value)
  local list = {}
  for i = 1, self.count do
    cuda.set_device(i - 1)
    list[i] = assert(cuda.buffer(dtype, count)):fill(99)
    if value then
      local elements = {}
      for k = 1, count do elements[k] = value(i - 1, k) end
      list[i]:copy_from(elements)
    end
  end
  cuda.set_device(0)
  return list
end

--- Calls fn(rank, communicator, stream) for each rank inside one group, and waits.
function World:each(fn)
  nccl.group(function()
    for i = 1, self.count do fn(i - 1, self.comms[i], self.streams[i]) end
  end)
  for i = 1, self.count do self.streams[i]:sync() end
end

--- Element i on rank r must be expected(r, i); where that is nil, untouched.
function World.check(_, buffers, expected, label)
  for i = 1, #buffers do
    local wanted = {}
    for k = 1, buffers[i].count do wanted[k] = expected(i - 1, k) or 99 end
    luaunit.assertEquals(buffers[i]:to_table(), wanted, label .. ", rank " .. i - 1)
  end
end

return { open = open }
