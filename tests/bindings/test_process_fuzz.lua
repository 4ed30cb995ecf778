--- Any value anywhere in nclua.process and nclua.world: no crash, and no process is left.
local fuzz = require("fuzz")
local luaunit = require("luaunit")
local process = require("nclua.process")
local world = require("nclua.world")

TestProcessFuzz = {}

function TestProcessFuzz.test_process()
  local report = fuzz.module(process, {
    n = 500,
    values = {
      "TERM", "SIGKILL", { "true" }, { "cat" }, { "echo", 1, 2.5 }, { "sleep", 0.3 },
      { stdin = "text", timeout_s = 0.01, grace_s = 0 }, { timeout_s = 0.01 },
      { stdout = "null", stderr = "merge", timeout_s = 0.02 }, 0.001,
      { on_line = error, timeout_s = 0.02 }, { env = { A = 1 }, clean = true },
    },
    make = {
      function() return process.spawn({ "cat" }, { stdin = "x" }) end,
      function() return process.spawn({ "sleep", 5 }, { timeout_s = 0.01 }) end,
    },
  })
  luaunit.assertEquals(report.unreached, {})
end

function TestProcessFuzz.test_world()
  local report = fuzz.module(world, {
    n = 3000,
    values = {
      { count = 1 }, { count = 2, output = "capture" }, { count = 1, output = "null" },
      { count = 1, affinity = { 0 } }, { count = 2, launcher = true }, 10,
      function(rank) rank:emit("x", { 1 }) end, function() error({}) end,
    },
    make = {
      function() return world.fork({ count = 2 }, function(rank) rank:barrier() end) end,
    },
  })
  -- A member needs a launcher, and a rank's handle is only seen in ranks.
  luaunit.assertEquals(report.unreached, {})
end

function TestProcessFuzz.test_the_handle_of_a_rank()
  local running <close> = assert(world.fork({ count = 1, output = "null" }, function(rank)
    local report = fuzz.module({ rank = function() return rank end }, {
      n = 5000,
      values = { "section", { 1 }, "NAME", ("i"):rep(128) },
      make = { function() return rank end },
    })
    assert(#report.unreached == 0, table.concat(report.unreached, " "))
  end))
  local event, message
  repeat
    local name, _, text = running:step(1000)
    if name == "error" then message = text end
    event = name
  until event == "done"
  luaunit.assertEquals(message, nil)
end

function TestProcessFuzz.test_no_process_is_left()
  collectgarbage()
  local count = [[ps -o pid= --ppid $PPID | grep -vc "^ *$$\$"]]
  luaunit.assertEquals(process.run({ "sh", "-c", count }).stdout, "0\n")
end
