local luaunit = require("luaunit")
local process = require("nclua.process")
local ranks = require("nclua.ranks")

local eq, is_true = luaunit.assertEquals, luaunit.assertTrue

-- How each launcher tells a process who it is; %d: index, count.
local LAUNCHERS = {
  torchrun = { RANK = "%1", WORLD_SIZE = "%2", LOCAL_WORLD_SIZE = "%2",
    MASTER_PORT = "29500" },
  ["Open MPI"] = { OMPI_COMM_WORLD_RANK = "%1", OMPI_COMM_WORLD_SIZE = "%2",
    OMPI_COMM_WORLD_LOCAL_SIZE = "%2", PMIX_NAMESPACE = "prte.1@1" },
  Slurm = { SLURM_PROCID = "%1", SLURM_STEP_NUM_TASKS = "%2", SLURM_JOB_ID = "7",
    SLURM_STEP_ID = "0" },
  PMI = { PMI_RANK = "%1", PMI_SIZE = "%2" },
}

local UNSET = { "RANK", "WORLD_SIZE", "OMPI_*", "SLURM_*", "PMI_*", "PMIX_*", "MASTER_*" }

local function environment(launcher, index, count)
  local env = {}
  for key, value in pairs(LAUNCHERS[launcher]) do
    env[key] = value:gsub("%%1", tostring(index)):gsub("%%2", tostring(count))
  end
  return env
end

--- Starts one nclua a rank, as a launcher does; returns their handles from 1.
local function start(launcher, count, script, change, on_line)
  local list = {}
  for index = 0, count - 1 do
    local env = environment(launcher, index, count)
    for key, value in pairs(change or {}) do env[key] = value end
    list[index + 1] = assert(process.spawn({ os.getenv("NCLUA"), "-e", script },
      { env = env, unset = UNSET, timeout_s = 20, on_line = on_line }))
  end
  return list
end

local function finish(list)
  local results = {}
  for i, p in ipairs(list) do
    results[i] = p:wait()
    p:close()
  end
  return results
end

local SCRIPT = [[
  local ranks = require("nclua.ranks")
  for turn = 1, 2 do
    local sum, lines = 0, 0
    local report = assert(ranks.run({
      fn = function(rank)
        for i = 1, 1000 do rank:emit("x", { value = rank.index * turn }) end
        rank:barrier()
        local id = rank.index == 0 and ("x"):rep(128) or nil
        assert(rank.handle:exchange(id) == ("x"):rep(128))
        rank:check("index", rank.index < rank.count)
      end,
      on_row = function(_, _, row) sum = sum + row.value end,
    }))
    print(ranks.launcher().index, report.count, sum, #report.checks, #report.ranks)
  end]]

TestRanksLauncher = {}

function TestRanksLauncher.test_every_launcher()
  for name in pairs(LAUNCHERS) do
    local got = finish(start(name, 3, SCRIPT))
    for _, result in ipairs(got) do eq({ result.exit_code, result.stderr }, { 0, "" }) end
    eq(got[1].stdout, "0\t3\t3000\t3\t3\n0\t3\t6000\t3\t3\n", name)
    eq(got[2].stdout, "1\t3\t0\t0\t0\n1\t3\t0\t0\t0\n", name)
  end
end

function TestRanksLauncher.test_a_rank_of_another_process_fails()
  local got = finish(start("torchrun", 3, [[
    print(require("nclua.ranks").run({ fn = function(rank)
      if rank.index == 2 then error("went wrong") end
      rank:barrier()
    end }))]]))
  luaunit.assertStrContains(got[1].stdout, "rank 2: (command line):2: went wrong\trank_err")
  luaunit.assertStrContains(got[2].stdout, "world failed: process 0 says why\tpeer")
end

function TestRanksLauncher.test_a_rank_of_another_process_is_killed()
  local got = finish(start("torchrun", 3, [[
    print(require("nclua.ranks").run({ fn = function(rank)
      if rank.index == 2 then os.execute("kill -9 $PPID") end
      rank:barrier()
    end }))]]))
  luaunit.assertStrContains(got[1].stdout, "rank 2 died of SIGKILL")
  for _, result in ipairs(got) do is_true(result.wall_us < 5000000) end
end

function TestRanksLauncher.test_a_process_is_killed()
  local is_running
  local list = start("torchrun", 3, [[
    print(require("nclua.ranks").run({
      fn = function(rank)
        rank:barrier()
        if rank.index == 0 then
          print("running")
          io.stdout:flush()
        end
        rank:barrier()
        while true do end
      end,
    }))]], {}, function(line) is_running = is_running or line == "running" end)
  repeat list[1]:wait(0.02) until is_running
  assert(process.run({ "kill", "-9", tostring(list[3].pid) }).ok)
  local got = finish(list)
  eq(got[3].signal, "SIGKILL")
  luaunit.assertStrContains(got[1].stdout, "rank 2 is gone with its process")
  luaunit.assertStrContains(got[2].stdout, "\tpeer")
  for i = 1, 2 do is_true(not got[i].timed_out) end
end

function TestRanksLauncher.test_another_number_of_ranks()
  for _, result in ipairs(finish(start("torchrun", 2,
    [[print(require("nclua.ranks").run({ n = 4, fn = print }))]]))) do
    luaunit.assertStrContains(result.stdout,
      "4 ranks were asked for, torchrun made a world of 2\tEINVAL")
  end
end

function TestRanksLauncher.test_several_hosts_are_refused()
  for _, result in ipairs(finish(start("torchrun", 2,
    [[print(require("nclua.ranks").run({ fn = print }))]], { LOCAL_WORLD_SIZE = "1" }))) do
    luaunit.assertStrContains(result.stdout,
      "ranks of several hosts are not supported\tENOTSUP")
  end
end

function TestRanksLauncher.test_who_is_no_launcher()
  local CASES = {
    { { RANK = "0", WORLD_SIZE = "1" }, "nil" }, -- forks its own ranks
    { { RANK = "x", WORLD_SIZE = "2" }, "nil" },
    { { SLURM_PROCID = "0", SLURM_NTASKS = "4" }, "nil" }, -- a batch script
    { { RANK = "0", WORLD_SIZE = "2", NCLUA_LAUNCHER = "none" }, "nil" },
    { { RANK = "0", WORLD_SIZE = "2" }, "torchrun" },
    { { RANK = "3", WORLD_SIZE = "2" }, "torchrun: RANK is 3, but WORLD_SIZE is 2" },
  }
  for _, case in ipairs(CASES) do
    local got = assert(process.run({ os.getenv("NCLUA"), "-e", [[
      local ok, outer = pcall(require("nclua.ranks").launcher)
      print(type(outer) == "table" and outer.launcher or outer)]] },
      { env = case[1], unset = UNSET }))
    luaunit.assertStrContains(got.stdout, case[2])
  end
  eq(ranks.launcher(), nil)
end
