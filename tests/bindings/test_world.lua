local luaunit = require("luaunit")
local process = require("nclua.process")
local world = require("nclua.world")

local eq, is_true = luaunit.assertEquals, luaunit.assertTrue

--- Runs a world to its end: all events but the exits, and the exits by rank.
local function run(options, main)
  local running <close> = assert(world.fork(options, main))
  local events, exits = {}, {}
  repeat
    local event = table.pack(running:step(1000))
    if event[1] == "exit" then
      exits[event[2]] = event[3]
    elseif event[1] then
      events[#events + 1] = event
    end
  until event[1] == "done"
  return events, exits
end

local function rows_of(events, rank)
  local rows = {}
  for _, event in ipairs(events) do
    if event[1] == "row" and event[2] == rank then rows[#rows + 1] = event[4] end
  end
  return rows
end

local function is_gone(pid)
  return not assert(process.run({ "test", "-e", "/proc/" .. pid })).ok
end

local function children()
  local count = [[ps -o pid= --ppid $PPID | grep -vc "^ *$$\$"]]
  return process.run({ "sh", "-c", count }).stdout
end

TestWorld = {}

function TestWorld:setUp()
  self.children = children()
end

function TestWorld:tearDown()
  collectgarbage()
  eq(children(), self.children, "processes remain")
end

function TestWorld.test_values_come_as_they_went()
  local sent = { i = math.mininteger, f = 1 / 3, inf = -math.huge, t = true, no = false,
    s = "a\0b\n", e = "", [7] = "seven", [0.5] = 1, inner = { { x = 1.0 } } }
  local events = run({ count = 1 }, function(rank) rank:emit("all", sent) end)
  local row = events[1][4]
  eq(events[1][3], "all")
  eq(row, sent)
  eq({ math.type(row.i), math.type(row.inner[1].x) }, { "integer", "float" })
end

function TestWorld.test_events_of_a_rank_are_in_order()
  local events, exits = run({ count = 2 }, function(rank)
    rank:emit("a", { 1 })
    rank:check("fine", 1, { why = "so" })
    rank:emit("b", { 2 })
    if rank.index == 1 then error("at the end") end
  end)
  local names = { [0] = "", "" }
  for _, e in ipairs(events) do
    if e[2] then names[e[2]] = names[e[2]] .. e[1] .. " " end
    if e[1] == "check" then eq({ e[3], e[4], e[5] }, { "fine", true, { why = "so" } }) end
    if e[1] == "error" then
      luaunit.assertStrMatches(e[3], ".*test_world.lua:%d+: at the end")
      luaunit.assertStrContains(e[4], "stack traceback")
    end
  end
  eq(names, { [0] = "row check row finished ", "row check row error " })
  eq({ exits[0].exit_code, exits[1].exit_code }, { 0, 1 })
end

function TestWorld.test_many_rows_from_eight_ranks()
  local events = run({ count = 8 }, function(rank)
    for i = 1, 5000 do rank:emit("x", { i = i, name = "some text", value = i * 0.5 }) end
  end)
  for rank = 0, 7 do
    local rows = rows_of(events, rank)
    eq(#rows, 5000)
    for i, row in ipairs(rows) do assert(row.i == i and row.value == i * 0.5) end
  end
end

function TestWorld.test_a_slow_parent_holds_the_ranks_back()
  local running <close> = assert(world.fork({ count = 2 }, function(rank)
    for i = 1, 40 do rank:emit("big", { i = i, text = ("x"):rep(100000) }) end
  end))
  process.run({ "sleep", "0.2" })
  local count = 0
  repeat
    local event = running:step(1000)
    if event == "row" then count = count + 1 end
  until event == "done"
  eq(count, 80)
end

function TestWorld.test_what_cannot_be_sent()
  local events = run({ count = 1 }, function(rank)
    local loop = {}
    loop.loop = loop
    for _, value in ipairs({ print, loop, io.stdout, coroutine.create(print) }) do
      local ok, message = pcall(rank.emit, rank, "x", { value = value })
      rank:emit("refused", { ok = ok, message = message })
    end
    rank:emit("after", { fine = true })
  end)
  eq(#rows_of(events, 0), 5, "nothing of a refused row is sent")
  eq(events[1][4], { ok = false, message = "emit: a function cannot be sent" })
  luaunit.assertStrContains(events[2][4].message, "nest too deeply")
end

function TestWorld.test_barrier_and_exchange()
  local events = run({ count = 4 }, function(rank)
    for i = 1, 200 do
      local id = rank.index == 0 and (string.char(i % 256)):rep(128) or nil
      local got = rank:exchange(id)
      assert(got == (string.char(i % 256)):rep(128))
      rank:barrier()
    end
    rank:emit("done", {})
  end)
  for rank = 0, 3 do eq(#rows_of(events, rank), 1) end
end

function TestWorld.test_barrier_holds_everybody()
  local path = os.tmpname()
  local events = run({ count = 3 }, function(rank)
    if rank.index == 2 then
      process.run({ "sleep", "0.1" })
      assert(io.open(path, "w")):write("here"):close()
    end
    rank:barrier()
    local file <close> = assert(io.open(path))
    rank:emit("seen", { text = file:read("a") })
  end)
  os.remove(path)
  for rank = 0, 2 do eq(rows_of(events, rank)[1].text, "here") end
end

function TestWorld.test_output()
  local texts = { stdout = {}, stderr = {} }
  local events = run({ count = 2, output = "capture" }, function(rank)
    io.write("out ", rank.index)
    io.stderr:write("err ", rank.index)
    if rank.index == 1 then os.exit(0) end
  end)
  for _, event in ipairs(events) do
    if event[1] == "output" then
      local of = texts[event[4]]
      of[event[2]] = (of[event[2]] or "") .. event[3] -- it may come in pieces
    end
  end
  eq(texts, { stdout = { [0] = "out 0", "out 1" }, stderr = { [0] = "err 0", "err 1" } })
end

function TestWorld.test_output_in_files()
  local folder = os.tmpname()
  os.remove(folder)
  process.run({ "mkdir", folder })
  run({ count = 2, output = "files", log_dir = folder }, function(rank)
    print("I am", rank.index)
    os.execute("echo and my child")
  end)
  local got = process.run({ "sh", "-c", "cat rank-1.stdout; ls" }, { cwd = folder })
  process.run({ "rm", "-r", folder })
  eq(got.stdout, "I am\t1\nand my child\nrank-0.stderr\nrank-0.stdout\n"
    .. "rank-1.stderr\nrank-1.stdout\n")
  local options = { count = 1, output = "files", log_dir = "/no" }
  local _, message, code = world.fork(options, print)
  eq(code, "ENOENT")
  luaunit.assertStrContains(message, "/no/rank-0.stdout")
end

function TestWorld.test_buffered_output_is_written_once()
  local got = assert(process.run({ os.getenv("NCLUA"), "-e", [[
    io.write("before\n")
    local w <close> = require("nclua.world").fork({ count = 3 }, function() end)
    repeat until w:step(100) == "done"
    io.write("after\n")]] }))
  eq({ got.stdout, got.stderr }, { "before\nafter\n", "" })
end

function TestWorld.test_affinity()
  local events = run({ count = 1, affinity = { 0 } }, function(rank)
    local got = process.run({ "grep", "Cpus_allowed_list", "/proc/self/status" })
    rank:emit("cpus", { text = got.stdout })
  end)
  luaunit.assertStrContains(events[1][4].text, "\t0\n")
  local _, message, code = world.fork({ count = 1, affinity = { { 0, 1000 } } }, print)
  eq(code, "EINVAL")
  luaunit.assertStrContains(message, "no CPU 1000")
end

function TestWorld.test_wrong_arguments()
  local CASES = {
    { { count = 0 }, "count" },
    { { count = 257 }, "count" },
    { {}, "'count' is required" },
    { { count = 1, outptu = "null" }, "unknown option 'outptu'.*output" },
    { { count = 1, output = "nil" }, "'inherit', 'capture'" },
    { { count = 1, output = "files" }, "log_dir" },
    { { count = 2, affinity = { 0 } }, "one entry for each rank" },
    { { count = 1, affinity = { "x" } }, "affinity" },
    { { count = 1, affinity = { {} } }, "affinity" },
  }
  for i, case in ipairs(CASES) do
    local ok, message = pcall(world.fork, case[1], print)
    is_true(not ok, "case " .. i)
    luaunit.assertStrMatches(message, ".*" .. case[2] .. ".*")
  end
  luaunit.assertErrorMsgContains("function expected", world.fork, { count = 1 })
end

function TestWorld.test_a_second_world_is_refused()
  local running <close> = assert(world.fork({ count = 1 }, function() end))
  local _, message, code = world.fork({ count = 1 }, print)
  eq(code, "busy")
  luaunit.assertStrContains(message, "a running world")
  running:close()
  run({ count = 1 }, function(rank)
    local _, inner, why = world.fork({ count = 1 }, print)
    assert(why == "busy" and inner:find("do not nest"), inner)
    assert(rank.index == world.current())
  end)
  eq(world.current(), nil)
end

function TestWorld.test_closing_kills()
  local running = assert(world.fork({ count = 3 }, function() while true do end end))
  local pids = running:pids()
  eq(#pids, 3)
  running:close()
  running:close()
  for _, pid in ipairs(pids) do is_true(is_gone(pid)) end
  for _, name in ipairs({ "step", "abort", "kill", "status", "pids" }) do
    luaunit.assertErrorMsgContains("closed world", running[name], running, 0)
  end
  eq(tostring(running), "world.world (closed)")
  luaunit.assertErrorMsgContains("world.world expected", running.step, {}, 0)
end

function TestWorld.test_collected_while_it_runs()
  local running = assert(world.fork({ count = 2 }, function(rank) rank:barrier() end))
  is_true(#running:pids() == 2)
  running = nil -- luacheck: ignore 311
  collectgarbage()
end

function TestWorld.test_ranks_die_with_their_parent()
  local p <close> = assert(process.spawn({ os.getenv("NCLUA"), "-e", [[
    local world = require("nclua.world")
    local w = world.fork({ count = 3 }, function() while true do end end)
    print(table.concat(w:pids(), " "))
    io.stdout:flush()
    while true do w:step(1000) end]] }, {
    on_line = function(line) _G.PIDS = line end,
  }))
  while not _G.PIDS do p:wait(0.05) end
  local pids = {}
  for pid in _G.PIDS:gmatch("%d+") do pids[#pids + 1] = pid end
  _G.PIDS = nil
  eq(#pids, 3)
  assert(process.run({ "kill", "-9", tostring(p.pid) }).ok)
  p:wait()
  for _ = 1, 100 do
    if is_gone(pids[1]) and is_gone(pids[2]) and is_gone(pids[3]) then return end
    process.run({ "sleep", "0.02" })
  end
  luaunit.fail("ranks outlive their parent")
end

function TestWorld.test_a_process_of_the_parent_survives_the_ranks()
  local cat <close> = assert(process.spawn({ "sleep", "60" }))
  run({ count = 2 }, function() cat:close() end)
  eq(cat:poll(), nil)
end

function TestWorld.test_what_a_rank_closes()
  local path = os.tmpname()
  local function note(text)
    return setmetatable({}, { __close = function()
      local file <close> = assert(io.open(path, "a"))
      file:write(text, "\n")
    end })
  end
  for _, leave in ipairs({ "error", "exit", "return" }) do
    local parents <close> = note("parent's")
    local _ = parents
    run({ count = 1 }, function()
      local mine <close> = note("rank's")
      if leave == "exit" then os.exit(0) end
      if leave == "error" then error(mine) end
    end)
  end
  local file <close> = assert(io.open(path))
  eq(file:read("a"), "rank's\nparent's\nparent's\nrank's\nparent's\n")
  os.remove(path)
end

function TestWorld.test_the_rank_handle()
  local events = run({ count = 2 }, function(rank)
    assert(tostring(rank) == ("world.rank (%d of 2)"):format(rank.index))
    assert(not pcall(rank.emit, {}, "x", {}))
    assert(not pcall(rank.emit, rank, 1, {}))
    assert(not pcall(rank.emit, rank, "x", 1))
    rank:setenv("NCLUA_TEST", "1")
    assert(os.getenv("NCLUA_TEST") == "1")
    rank:setenv("NCLUA_TEST")
    assert(os.getenv("NCLUA_TEST") == nil)
    assert(not pcall(rank.setenv, rank, "A=B", "1"))
    if rank.index == 0 then assert(not pcall(rank.exchange, rank, "short")) end
    rank:emit("fine", {})
  end)
  for rank = 0, 1 do eq(#rows_of(events, rank), 1) end
end

function TestWorld.test_recorder_of_this_process()
  local own = world.recorder()
  eq({ type(own.ops), type(own.comms), own.waiting }, { "table", "table", nil })
  local count, backend = world.devices()
  is_true(math.type(count) == "integer" and (backend == "cpu" or backend == "cuda"))
end
