--- Ranks with communicators: what a dead, failing or odd rank does to the others.
local luaunit = require("luaunit")
local ranks = require("nclua.ranks")

local eq, is_true = luaunit.assertEquals, luaunit.assertTrue

--- A rank's function: `calls` all_reduces on one stream; `at(rank, i)` may do something
--- before call i, and leaves it out by returning true.
local function calls_of(calls, at)
  return function(rank)
    local cuda = require("nclua.cuda")
    local comm <close> = rank:comm()
    local stream <close> = assert(cuda.stream())
    local x <close> = assert(cuda.buffer("f32", 1024)):fill(rank.index + 1, stream)
    for i = 0, calls - 1 do
      if not (at and at(rank, i)) then comm:all_reduce(x, x, "max", stream) end
    end
    stream:sync()
    rank:check("maximum", x:compare(rank.count) == 0)
    rank:barrier(stream)
  end
end

local function fails(code, options)
  local report, message, got, partial = ranks.run(options)
  eq({ report, got }, { nil, code }, message)
  is_true(partial.wall_us < 5000000, message)
  return message, partial
end

TestRanksNccl = {}

function TestRanksNccl.test_one_to_eight_ranks()
  for n = 1, 8 do
    local report, message = ranks.run({ n = n, fn = calls_of(20) })
    is_true(report ~= nil, message)
    eq(#report.checks, n)
    for _, check in ipairs(report.checks) do is_true(check.ok, "rank " .. check.rank) end
  end
end

function TestRanksNccl.test_several_communicators()
  assert(ranks.run({ n = 3, fn = function(rank)
    local cuda = require("nclua.cuda")
    local x <close> = assert(cuda.buffer("i32", 10)):fill(1)
    local first <close> = rank:comm()
    local second <close> = rank:comm({ name = "second" })
    first:all_reduce(x, x, "sum")
    second:all_reduce(x, x, "sum")
    cuda.synchronize()
    assert(x:compare(9) == 0)
    _G.kept = rank:comm() -- never closed
    _G.kept:all_reduce(x, x, "sum")
    cuda.synchronize()
  end }))
end

function TestRanksNccl.test_a_skipped_call()
  local message, partial = fails("timeout", { n = 4, timeout_s = 0.5,
    fn = calls_of(50, function(rank, i) return rank.index == 2 and i == 17 end) })
  luaunit.assertStrContains(message, "rank 2 is 1 all_reduce behind the others on comm 0: "
    .. "last enqueued #48, the others #49")
  luaunit.assertStrMatches(message, ".*\n1 +running +all_reduce #49 f32 x 1024[^\n]*"
    .. "all_reduce #48[^\n]*stream:sync.*")
  eq(partial.failure.rank, 2)
end

function TestRanksNccl.test_a_wait_fails_with_its_collective()
  local message, partial = fails("rank_error", { n = 3, timeout_s = 5, fn = function(rank)
    local cuda = require("nclua.cuda")
    local comm <close> = rank:comm()
    local x <close> = assert(cuda.buffer("f32", 64)):fill(1)
    comm:all_reduce(x, x, "max")
    if rank.index == 2 then return end -- leaves one call too early
    comm:all_reduce(x, x, "max")
    cuda.synchronize()
  end })
  luaunit.assertStrMatches(message, ".*: synchronize: a collective failed: "
    .. "ncclRemoteError: rank %d waits for rank 2, which has left the communicator\n.*")
  luaunit.assertStrContains(message, "rank 2 is 1 all_reduce behind the others")
  is_true(partial.failure.blames_peer)
end

function TestRanksNccl.test_a_skipped_call_between_barriers()
  local message = fails("timeout", { n = 4, timeout_s = 0.5,
    fn = calls_of(50, function(rank, i)
      if i == 18 then
        require("nclua.cuda").synchronize()
        rank:barrier()
      end
      return rank.index == 2 and i == 17
    end) })
  luaunit.assertStrContains(message, "rank 2 is 1 all_reduce behind the others on comm 0: "
    .. "last enqueued #16, the others #17")
end

function TestRanksNccl.test_a_killed_rank()
  local message = fails("rank_died", { n = 4, fn = calls_of(50, function(rank, i)
    if rank.index == 2 and i == 30 then os.execute("kill -9 $PPID") end
  end) })
  luaunit.assertStrContains(message, "rank 2 died of SIGKILL")
  luaunit.assertStrContains(message, "last enqueued all_reduce #29 f32 x 1024")
end

function TestRanksNccl.test_a_rank_that_raises()
  local message = fails("rank_error", { n = 4, fn = calls_of(50, function(rank, i)
    if rank.index == 2 and i == 30 then error("gave up") end
  end) })
  luaunit.assertStrMatches(message, "rank 2: .*test_ranks_nccl.lua:%d+: gave up")
end

function TestRanksNccl.test_a_rank_without_a_communicator()
  local message = fails("timeout", { n = 3, timeout_s = 0.5, fn = function(rank)
    if rank.index == 1 then rank:barrier() end
    rank:comm()
  end })
  luaunit.assertStrContains(message, "rank 1 has entered 1 barriers, the others 0")
end
