--- What carried a collective, and how nclua's own plugin steers it from call to call.
local luaunit = require("luaunit")
local plugins = require("nclua.plugins")
local ranks = require("nclua.ranks")

-- What all ranks can be steered to.
local CELLS = {
  { "Ring", "Simple" }, { "Tree", "LL128" }, { "Ring", "LL" },
  { "Tree", "Simple" }, { "Ring", "LL128" }, { "Tree", "LL" },
}

local function run(n, env, fn)
  local report = assert(ranks.run({ n = n, env = env, timeout_s = 60, fn = fn }))
  luaunit.assertTrue(#report.checks > 0)
  for _, check in ipairs(report.checks) do
    luaunit.assertTrue(check.ok, ("rank %d: %s"):format(check.rank, check.name))
  end
end

local function steer(rank, path)
  local cuda, tuner = require("nclua.cuda"), require("nclua.tuner")
  local plugin <close> = assert(tuner.open(path))
  local comm <close> = rank:comm()
  local x <close> = assert(cuda.buffer("f32", 1000))
  local chosen, right = true, true
  for call = 1, 12 do
    local cell = CELLS[call % #CELLS + 1]
    plugin:force({ collective = "all_reduce", algorithm = cell[1], protocol = cell[2] })
    x:fill(rank.index + call)
    comm:all_reduce(x, x, "sum")
    local c = comm:last_choice()
    chosen = chosen and c.algorithm == cell[1] and c.protocol == cell[2]
    right = right and x:compare(2 * call + 1) == 0
  end
  plugin:release()
  rank:check("all calls were carried as steered", chosen)
  rank:check("all sums are right", right)
end

TestNcclChoice = {}

function TestNcclChoice.test_force_changes_the_choice_call_by_call()
  local path = assert(plugins.file("tuner"))
  local env = { NCCL_TUNER_PLUGIN = path, NCCL_ALGO = false, NCCL_PROTO = false }
  run(2, env, function(rank) steer(rank, path) end)
end

function TestNcclChoice.test_what_is_told()
  run(2, { NCCL_ALGO = "ring", NCCL_PROTO = "simple" }, function(rank)
    local cuda, nccl = require("nclua.cuda"), require("nclua.nccl")
    local comm <close> = rank:comm()
    local x <close> = assert(cuda.buffer("f32", 1000)):fill(1)
    local y <close> = assert(cuda.buffer("f32", 2000)):fill(1)
    rank:check("none at first", comm:last_choice() == nil)
    nccl.group(function()
      comm:all_reduce(x, x, "sum")
      comm:all_gather(x, y)
    end)
    local c = comm:last_choice()
    rank:check("the group's last", c.collective == "all_gather" and c.bytes == 4000
      and c.algorithm == "Ring" and c.protocol == "Simple" and c.channels >= 1
      and c.source == "cpu backend")
    cuda.synchronize()
    local closed <close> = rank:comm()
    closed:close()
    rank:check("closed", not pcall(closed.last_choice, closed))
  end)
end

function TestNcclChoice.test_one_rank_has_no_choice()
  run(1, nil, function(rank)
    local cuda = require("nclua.cuda")
    local comm <close> = rank:comm()
    local x <close> = assert(cuda.buffer("f32", 1000)):fill(1)
    comm:all_reduce(x, x, "sum")
    rank:check("none", comm:last_choice() == nil)
    cuda.synchronize()
  end)
end

-- NCCL would hang, or take one protocol's bytes for another's.
function TestNcclChoice.test_ranks_that_choose_differently_fail()
  local pairs_of = {
    { { NCCL_ALGO = "ring" }, { NCCL_ALGO = "tree" } },
    { { NCCL_PROTO = "LL" }, { NCCL_PROTO = "Simple" } },
    { { NCCL_PROTO = "LL128" }, { NCCL_PROTO = "LL" } },
    { { NCCL_PROTO = "Simple" }, { NCCL_PROTO = "LL128" } },
  }
  for _, pair in ipairs(pairs_of) do
    for _, count in ipairs({ 1, 1000, 100000 }) do
      local report, message = ranks.run({ n = 2, timeout_s = 60,
        env = function(i) return pair[i + 1] end,
        fn = function(rank)
          local cuda = require("nclua.cuda")
          local comm <close> = rank:comm()
          local x <close> = assert(cuda.buffer("f32", count)):fill(1)
          comm:all_reduce(x, x, "sum")
          cuda.synchronize()
          rank:check("never here with a wrong sum", x:compare(2) == 0)
        end })
      luaunit.assertNil(report)
      -- One rank sees the difference; the other may only see that this one has failed.
      luaunit.assertStrContains(message, "a collective failed: nccl")
    end
  end
end
