--- The cases of bench_enqueue: { label, function(n) } that makes n calls.
local cuda = require("nclua.cuda")
local nccl = require("nclua.nccl")

local comm = assert(nccl.init_all(1))[1]
local stream = assert(cuda.stream())
local x, y = assert(cuda.buffer("f32", 16)), assert(cuda.buffer("f32", 16))
local all_reduce = nccl.all_reduce

local burst = comm:burst(function() comm:all_reduce(x, x, "sum", stream) end)
local pieces = comm:burst(function()
  for i = 1, 16 do comm:all_reduce(x:slice(i, 1), y:slice(i, 1), "sum", stream) end
end)

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
  { "burst:enqueue(n, stream)", function(n) burst:enqueue(n, stream) end },
  { "burst:enqueue(20, stream)", function(n)
    for _ = 1, n // 20 do pieces:enqueue(20, stream) end
  end },
  { "comm:all_gather(x, y, stream)", function(n)
    for _ = 1, n do comm:all_gather(x, y, stream) end
  end },
  { "comm:send(x, 0, stream)", function(n)
    for _ = 1, n do comm:send(x, 0, stream) end
  end },
}
