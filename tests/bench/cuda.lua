--- What a call into nclua.cuda costs the host. Prints a table, asserts nothing:
---   nclua tests/bench/cuda.lua
--- Calls that enqueue include the backend's own time: the row "query" is the floor of one
--- call that does next to nothing there.
local cuda = require("nclua.cuda")
local stats = require("nclua.stats")

local ROUNDS = 11

--- Median over rounds of the time of one call, less the loop's own.
local function measure(calls, fn)
  local times = stats.vector()
  for _ = 1, ROUNDS do
    local start = cuda.now_ns()
    fn(calls)
    times:push((cuda.now_ns() - start) / calls)
  end
  return times:median()
end

local stream <close> = assert(cuda.stream())
local event <close> = assert(cuda.event())
local x <close> = assert(cuda.buffer("f32", 1))
local y <close> = assert(cuda.buffer("f32", 1)):fill(1)
local big <close> = assert(cuda.buffer("f32", 100000)):fill(1)
local values = big:to_table()
local graph <close> = assert(stream:capture(function() x:fill(1, stream) end))
local function nothing() end

local CASES = {
  { "empty loop", 1000000, function(n) for _ = 1, n do nothing(x) end end },
  { "cuda.now_ns()", 1000000, function(n) for _ = 1, n do cuda.now_ns() end end },
  { "x.bytes", 1000000, function(n) for _ = 1, n do nothing(x.bytes) end end },
  { "x.fill (a method is found)", 1000000, function(n)
    for _ = 1, n do nothing(x.fill) end
  end },
  { "stream:query()", 200000, function(n) for _ = 1, n do stream:query() end end },
  { "x:fill(1, stream)", 20000, function(n)
    for _ = 1, n do x:fill(1, stream) end
    stream:sync()
  end },
  { "x:copy_from(y, stream)", 20000, function(n)
    for _ = 1, n do x:copy_from(y, stream) end
    stream:sync()
  end },
  { "event:record(stream)", 20000, function(n)
    for _ = 1, n do event:record(stream) end
    stream:sync()
  end },
  { "graph:launch(stream)", 5000, function(n)
    for _ = 1, n do graph:launch(stream) end
    stream:sync()
  end },
  { "x:fill(1)", 5000, function(n) for _ = 1, n do x:fill(1) end end },
  { "x:get(1)", 20000, function(n) for _ = 1, n do x:get(1) end end },
  { "x:slice(1, 1)", 200000, function(n) for _ = 1, n do x:slice(1, 1) end end },
  { "cuda.time(stream, nothing)", 5000, function(n)
    for _ = 1, n do cuda.time(stream, nothing) end
  end },
  { "buffer of 1 MiB, close", 5000, function(n)
    for _ = 1, n do cuda.buffer("u8", 1 << 20):close() end
  end },
  { "copy_from(table), an element", 100000, function() big:copy_from(values) end },
  { "to_table(), an element", 100000, function() big:to_table() end },
  { "compare, an element", 100000, function() big:compare(1) end },
}

print(("backend=%s, median of %d rounds"):format(cuda.backend(), ROUNDS))
print(("%-32s %10s"):format("call", "ns"))
for _, case in ipairs(CASES) do
  print(("%-32s %10.1f"):format(case[1], measure(case[2], case[3])))
end
