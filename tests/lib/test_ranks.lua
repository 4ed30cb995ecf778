local luaunit = require("luaunit")
local process = require("nclua.process")
local ranks = require("nclua.ranks")

local eq, is_true = luaunit.assertEquals, luaunit.assertTrue

local function spin()
  while true do end -- luacheck: ignore 542
end

--- Runs a world that must fail; returns message, report, seconds.
local function fails(code, options)
  local begin = os.time()
  local report, message, got, partial = ranks.run(options)
  eq({ report, got }, { nil, code }, message)
  return message, partial, os.time() - begin
end

TestRanks = {}

function TestRanks.test_rows_checks_and_report()
  local upvalue = { 10, 20, 30, 40 }
  local report = assert(ranks.run({ n = 4, fn = function(rank)
    rank:emit("s", { value = upvalue[rank.index + 1], device = rank.device })
    is_true(rank:check("holds", rank.index ~= 2, { got = rank.index }) == (rank.index ~= 2))
  end }))
  eq(report.row_count, 4)
  table.sort(report.rows, function(a, b) return a.rank < b.rank end)
  for i, row in ipairs(report.rows) do
    eq(row, { rank = i - 1, section = "s", row = { value = 10 * i, device = i - 1 } })
  end
  table.sort(report.checks, function(a, b) return a.rank < b.rank end)
  eq(report.checks[3], { rank = 2, name = "holds", ok = false, details = { got = 2 } })
  eq({ #report.ranks, report.ranks[4].exit_code, report.oversubscribed }, { 4, 0, false })
  is_true(report.wall_us > 0)
end

function TestRanks.test_on_row_in_order()
  local last = { [0] = 0, 0, 0 }
  local report = assert(ranks.run({ n = 3,
    fn = function(rank)
      for i = 1, 1000 do rank:emit("n", { i = i }) end
    end,
    on_row = function(rank, section, row)
      assert(section == "n" and row.i == last[rank] + 1)
      last[rank] = row.i
    end }))
  eq({ last, report.rows, report.row_count }, { { [0] = 1000, 1000, 1000 }, nil, 3000 })
end

function TestRanks.test_rank_killed()
  local message, partial, took = fails("rank_died", { n = 4,
    fn = function(rank)
      rank:barrier()
      if rank.index == 2 then os.execute("kill -9 $PPID") end
      rank:barrier()
    end })
  luaunit.assertStrContains(message, "rank 2 died of SIGKILL")
  luaunit.assertStrMatches(message, ".*\n2 +SIGKILL.*")
  luaunit.assertStrMatches(message, ".*\n3 +running[^\n]*rank:barrier.*")
  eq({ partial.failure.rank, partial.ranks[3].signal }, { 2, "SIGKILL" })
  is_true(took < 5)
end

function TestRanks.test_rank_error()
  local message, partial = fails("rank_error", { n = 3, fn = function(rank)
    rank:emit("before", {})
    rank:barrier()
    if rank.index == 1 then error("went wrong") end
    rank:barrier()
  end })
  luaunit.assertStrMatches(message, "rank 1: .*test_ranks.lua:%d+: went wrong")
  luaunit.assertStrContains(partial.failure.traceback, "test_ranks.lua")
  eq(partial.failure.rank, 1)
end

function TestRanks.test_error_values()
  luaunit.assertStrContains(fails("rank_error", { n = 1, fn = function() error() end }),
    "rank 0: nil")
  luaunit.assertStrContains(fails("rank_error", { n = 1, fn = function()
    error(setmetatable({}, { __tostring = function() return "an object" end }))
  end }), "rank 0: an object")
  luaunit.assertStrContains(fails("rank_error", { n = 1, fn = coroutine.yield }), "yield")
end

function TestRanks.test_a_death_explains_the_errors_it_causes()
  local message = fails("rank_died", { n = 2, fn = function(rank)
    if rank.index == 1 then
      rank:emit("wait", {})
      rank.handle:flush()
      os.execute("kill -9 $PPID")
    end
    process.run({ "sleep", "0.1" })
    error("my peer is gone")
  end, on_row = function()
    process.run({ "sleep", "0.3" }) -- both are over before the parent looks
  end })
  luaunit.assertStrContains(message, "rank 1 died of SIGKILL")
end

function TestRanks.test_rank_leaves()
  luaunit.assertStrContains(fails("rank_left", { n = 2, fn = function(rank)
    if rank.index == 0 then os.exit(3) end
    rank:barrier()
  end }), "rank 0 left with status 3")
end

function TestRanks.test_missed_barrier()
  local message, partial = fails("timeout", { n = 4, timeout_s = 0.3, fn = function(rank)
    for i = 1, 3 do
      if not (rank.index == 2 and i == 3) then rank:barrier() end
    end
    if rank.index == 2 then spin() end
  end })
  luaunit.assertStrContains(message,
    "no rank got on for 0.3 s: rank 2 has entered 2 barriers, the others 3")
  eq({ partial.failure.rank, #partial.failure.status }, { 2, 4 })
end

function TestRanks.test_finished_while_others_wait()
  local _, partial = fails("timeout", { n = 3, timeout_s = 0.3, fn = function(rank)
    if rank.index > 0 then rank:barrier() end
  end })
  luaunit.assertStrContains(table.concat(partial.failure.findings, "\n"),
    "rank 0 has finished while others wait")
end

function TestRanks.test_work_without_waits_is_no_hang()
  is_true(ranks.run({ n = 2, timeout_s = 0.1, fn = function()
    local begin = require("nclua.world").now_us()
    while require("nclua.world").now_us() - begin < 400000 do end
  end }) ~= nil)
end

function TestRanks.test_limit()
  local _, _, took = fails("limit", { n = 2, limit_s = 0.2, fn = spin })
  is_true(took < 4)
end

function TestRanks.test_error_in_on_row_ends_the_world()
  local ok, message = pcall(ranks.run, { n = 2,
    fn = function(rank)
      rank:emit("x", {})
      rank.handle:flush()
      spin()
    end,
    on_row = function() error("no more") end })
  is_true(not ok)
  luaunit.assertStrContains(message, "no more")
end

function TestRanks.test_signals_to_the_parent()
  for _, signal in ipairs({ "INT", "TERM" }) do
    local pids
    local p <close> = assert(process.spawn({ os.getenv("NCLUA"), "-e", [[
      local guard <close> = setmetatable({}, { __close = function() print("unwound") end })
      require("nclua.ranks").run({ n = 2, fn = function(rank)
        os.execute("echo $PPID")
        rank:barrier()
        while true do end
      end })]] }, {
      on_line = function(line) pids = pids and pids .. " " .. line or line end,
    }))
    repeat p:wait(0.02) until pids and pids:find(" ")
    p:kill(signal)
    local got = assert(p:wait(5))
    eq(got.exit_code, 1, signal)
    luaunit.assertStrContains(got.stdout, "unwound")
    for pid in pids:gmatch("%d+") do
      is_true(not process.run({ "test", "-e", "/proc/" .. pid }).ok, "a rank remains")
    end
  end
end

function TestRanks.test_environment()
  local got = {}
  assert(ranks.run({ n = 2,
    env = function(index) return { NCLUA_T = index, HOME = false } end,
    fn = function(rank)
      rank:emit("env", { t = os.getenv("NCLUA_T"), home = os.getenv("HOME") })
    end,
    on_row = function(rank, _, row) got[rank] = row end }))
  eq(got, { [0] = { t = "0" }, { t = "1" } })
  eq(os.getenv("NCLUA_T"), nil)
end

function TestRanks.test_lines()
  local lines = {}
  assert(ranks.run({ n = 2,
    fn = function(rank)
      io.write("one\n\ntw")
      io.stdout:flush()
      rank:barrier()
      io.write("o\nrest")
    end,
    on_line = function(rank, line, stream)
      lines[rank] = (lines[rank] or "") .. stream:sub(4) .. ":" .. line .. ";"
    end }))
  eq(lines, { [0] = "out:one;out:;out:two;out:rest;", "out:one;out:;out:two;out:rest;" })
end

function TestRanks.test_captured_output()
  local report = assert(ranks.run({ n = 2, output = "capture", fn = function(rank)
    print("rank", rank.index)
  end }))
  eq({ report.ranks[1].stdout, report.ranks[2].stdout, report.ranks[1].stderr },
    { "rank\t0\n", "rank\t1\n", "" })
end

function TestRanks.test_more_ranks_than_devices()
  local message = fails("no_device", { n = 100, fn = print })
  luaunit.assertStrContains(message, "100 ranks need 100 devices")
  local report = assert(ranks.run({ n = 10, oversubscribe = true, fn = function(rank)
    rank:emit("device", { device = rank.device, marked = rank.oversubscribed })
  end }))
  eq({ report.oversubscribed, report.row_count }, { true, 10 })
  for _, row in ipairs(report.rows) do is_true(row.row.marked) end
end

function TestRanks.test_refused_inside_a_rank_and_with_a_device_open()
  assert(ranks.run({ n = 2, fn = function(rank)
    local _, message, code = ranks.run({ n = 2, fn = print })
    assert(code == "busy" and message:find("do not nest"), message)
    rank:barrier()
  end }))
  local got = assert(process.run({ os.getenv("NCLUA"), "-e", [[
    local cuda, ranks = require("nclua.cuda"), require("nclua.ranks")
    local buffer = cuda.buffer("f32", 10)
    print(ranks.run({ n = 2, fn = print }))]] }))
  luaunit.assertStrContains(got.stdout, "this process cannot fork ranks")
  luaunit.assertStrContains(got.stdout, "\tbusy")
end

function TestRanks.test_wrong_options()
  local CASES = {
    { { n = 2 }, "'fn': expected a function, got nil" },
    { { fn = print, nn = 2 }, "unknown option 'nn'" },
    { { fn = print, n = "2" }, "'n': expected a number" },
    { { fn = print, on_row = 1 }, "'on_row'" },
    { { fn = print, env = 1 }, "'env'" },
    { { fn = print, n = 0 }, "count" },
    { { fn = print, n = 1.5 }, "count" },
    { { fn = print, n = 1, output = "x" }, "output" },
  }
  for i, case in ipairs(CASES) do
    local ok, message = pcall(ranks.run, case[1])
    is_true(not ok, "case " .. i)
    luaunit.assertStrMatches(message, ".*" .. case[2] .. ".*")
  end
  is_true(not pcall(ranks.run))
end

function TestRanks.test_run_after_run()
  for _ = 1, 5 do
    local report = assert(ranks.run({ n = 8, fn = function(rank) rank:barrier() end }))
    eq(#report.ranks, 8)
  end
end

function TestRanks.test_rank_can_be_extended()
  function ranks.Rank:double()
    return self.index * 2
  end
  local report = assert(ranks.run({ n = 2, fn = function(rank)
    rank:check("doubled", rank:double() == 2 * rank.index)
  end }))
  ranks.Rank.double = nil
  for _, check in ipairs(report.checks) do is_true(check.ok) end
end
