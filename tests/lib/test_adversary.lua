--- NCLUA_CPU_ADVERSARY: programs with a race fail every time, the right ones never.
local luaunit = require("luaunit")
local ranks = require("nclua.ranks")

local RUNS = 5

--- Two ranks that hold rank + 1: an all_reduce on `stream`, and what `use` does with it.
local function summing(use)
  return function(rank)
    local cuda = require("nclua.cuda")
    local comm <close> = rank:comm()
    local stream <close> = assert(cuda.stream())
    local other <close> = assert(cuda.stream())
    local done <close> = assert(cuda.event())
    local x <close> = assert(cuda.buffer("f32", 1000)):fill(rank.index + 1)
    local y <close> = assert(cuda.buffer("f32", 1000)):fill(3) -- right before the sum, too
    local z <close> = assert(cuda.buffer("f32", 1000)):fill(0)
    comm:all_reduce(x, y, "sum", stream)
    done:record(stream)
    use({ x = x, y = y, z = z, stream = stream, other = other, done = done })
    other:sync()
    stream:sync()
    rank:check("sum", z:compare(3) == 0)
  end
end

local function exchanging(use)
  return function(rank)
    local cuda = require("nclua.cuda")
    local nccl = require("nclua.nccl")
    local comm <close> = rank:comm()
    local stream <close> = assert(cuda.stream())
    local x <close> = assert(cuda.buffer("i32", 10)):fill(rank.index)
    local y <close> = assert(cuda.buffer("i32", 10))
    local peer = 1 - rank.index
    use(nccl, function() comm:send(x, peer, stream) end,
      function() comm:recv(y, peer, stream) end)
    stream:sync()
    rank:check("exchange", y:compare(peer) == 0)
  end
end

local PROGRAMS = {
  reading_before_the_wait = {
    wrong = summing(function(p) p.z:copy_from(p.y, p.other) end),
    right = summing(function(p)
      p.other:wait(p.done)
      p.z:copy_from(p.y, p.other)
    end),
  },
  reusing_a_buffer = {
    wrong = summing(function(p)
      p.x:fill(9, p.other)
      p.z:copy_from(p.y, p.stream)
    end),
    right = summing(function(p)
      p.other:wait(p.done)
      p.x:fill(9, p.other)
      p.z:copy_from(p.y, p.stream)
    end),
  },
  missing_group = {
    wrong = exchanging(function(_, send, recv)
      send()
      recv()
    end),
    right = exchanging(function(nccl, send, recv)
      nccl.group(function()
        send()
        recv()
      end)
    end),
  },
}

--- Did the world end well, and do all checks hold?
local function is_well(fn, adversary)
  local report = ranks.run({ n = 2, fn = fn, timeout_s = 0.5,
    env = { NCLUA_CPU_ADVERSARY = adversary } })
  if not report then return false end
  for _, check in ipairs(report.checks) do
    if not check.ok then return false end
  end
  return #report.checks == 2
end

TestAdversary = {}

for name, program in pairs(PROGRAMS) do
  TestAdversary["test_" .. name] = function()
    for run = 1, RUNS do
      luaunit.assertFalse(is_well(program.wrong, "1"), ("wrong, run %d"):format(run))
      luaunit.assertTrue(is_well(program.right, "1"), ("right, run %d"):format(run))
    end
  end
end

--- What makes it a trap: without the adversary a short message waits in a slot.
function TestAdversary.test_luck()
  luaunit.assertTrue(is_well(PROGRAMS.missing_group.wrong, false))
end
