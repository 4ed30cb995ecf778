--- The cases of bench_enqueue: { label, function(n) } that makes n calls.
local cuda = require("nclua.cuda")
local nccl = require("nclua.nccl")

local comm = assert(nccl.init_all(1))[1]
local stream = assert(cuda.stream())
local x, y = assert(cuda.buffer("f32", 16)), assert(cuda.buffer("f32", 16))
local all_reduce = nccl.all_reduce

return {
  { "empty loop", function(n) for _ = 1, n do end end },
  { 'comm:all_reduce(x, x, "sum", stream)', function(n)
    for _ = 1, n do comm:all_reduce(x, x, "sum", stream) end
  end },
  { 'comm:all_reduce(x, y, "avg", stream)', function(n)
    for _ = 1, n do comm:all_reduce(x, y, "avg", stream) end
  end },
  { 'comm:all_reduce(x, x, "sum")', function(n)
    for _ = 1, n do comm:all_reduce(x, x, "sum") end
  end },
  { 'all_reduce(comm, x, x, "sum", stream)', function(n)
    for _ = 1, n do all_reduce(comm, x, x, "sum", stream) end
  end },
  { "comm:all_reduce(...) in a group", function(n)
    nccl.group(function()
      for _ = 1, n do comm:all_reduce(x, x, "sum", stream) end
    end)
  end },
  { "comm:all_gather(x, y, stream)", function(n)
    for _ = 1, n do comm:all_gather(x, y, stream) end
  end },
  { "comm:send(x, 0, stream)", function(n)
    for _ = 1, n do comm:send(x, 0, stream) end
  end },
}
