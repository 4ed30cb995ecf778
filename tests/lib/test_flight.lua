local luaunit = require("luaunit")
local flight = require("nclua.flight")

local eq = luaunit.assertEquals

--- A rank that made the calls of `names` on comm 0 and completed `completed` of them.
local function rank(index, names, completed, more)
  local r = { index = index, barriers = 0, ops = {}, comms = {}, waiting = "stream:sync",
    waiting_us = 1500000 }
  for i, name in ipairs(names) do
    r.ops[i] = { name = name, op_count = i - 1, count = 8, dtype = "f32", comm = 0,
      ago_us = 2000000 }
  end
  if #names > 0 then
    r.comms[1] = { number = 0, enqueued = #names, completed = completed }
  end
  for key, value in pairs(more or {}) do r[key] = value end
  return r
end

local function calls(n, name)
  local list = {}
  for i = 1, n do list[i] = name or "all_reduce" end
  return list
end

TestFlight = {}

function TestFlight.test_one_behind()
  local found = flight.diagnose({ rank(0, calls(42), 40), rank(1, calls(42), 40),
    rank(2, calls(41), 41), rank(3, calls(42), 40) })
  eq(found[1],
    "rank 2 is 1 all_reduce behind the others on comm 0: last enqueued #40, the others #41")
end

function TestFlight.test_two_ranks_and_none()
  eq(flight.diagnose({ rank(0, calls(3), 0), rank(1, {}, 0) })[1], "rank 1 is 3 all_reduce "
    .. "behind the others on comm 0: last enqueued nothing, the others #2")
  eq(flight.diagnose({ rank(0, calls(3), 3), rank(1, calls(3), 3) }), {})
  eq(flight.diagnose({ rank(0, calls(3), 3) }), {})
end

function TestFlight.test_ahead()
  local all = { rank(0, calls(3), 2), rank(1, calls(2), 2), rank(2, calls(2), 2) }
  eq(flight.diagnose(all)[1],
    "rank 0 is 1 all_reduce ahead of the others on comm 0: last enqueued #2, the others #1")
end

function TestFlight.test_another_call()
  local other = { "all_reduce", "broadcast", "all_reduce" }
  eq(flight.diagnose({ rank(0, calls(3), 1), rank(1, other, 1), rank(2, calls(3), 1) }),
    { "call #1 on comm 0: rank 1 made broadcast f32 x 8, the others all_reduce f32 x 8" })
end

function TestFlight.test_sends_may_differ()
  eq(flight.diagnose({ rank(0, { "send" }, 0), rank(1, { "recv" }, 0) }), {})
end

function TestFlight.test_barriers_and_idle()
  eq(flight.diagnose({ rank(0, {}, 0, { barriers = 2 }), rank(1, {}, 0, { barriers = 2 }),
    rank(2, {}, 0, { barriers = 1, waiting = false }) }),
    { "rank 2 has entered 1 barriers, the others 2",
      "rank 2 waits for nothing while others wait" })
end

function TestFlight.test_table()
  local got = flight.table({ rank(0, { "send" }, 1), rank(1, {}, 0, { waiting = false }) })
  eq(got, [[
rank  state    last enqueued                        last completed  waits in
0     running  send #0 f32 x 8 (comm 0, 2.0 s ago)  send #0         stream:sync, 1.5 s
1     running  nothing                              nothing         -]])
end

function TestFlight.test_describe()
  eq(flight.describe(rank(0, calls(2), 1)), "waiting in stream:sync, 1.5 s; last enqueued "
    .. "all_reduce #1 f32 x 8 (comm 0, 2.0 s ago); last completed all_reduce #0")
end
