local luaunit = require("luaunit")
local section = require("nclua.section")

local SPEC = {
  title = "Demo",
  columns = "world_size size mode cycle t_us ok correct",
  keys = "size mode",
  case = "size={size};mode={mode}",
  metric = "t_us",
  summary = "size mode cycles correct",
  report = {},
}

-- A rank that only keeps what is emitted.
local function new_rank(index)
  local rank = { index = index, count = 2, rows = {} }
  function rank:emit(name, row) table.insert(self.rows, { name, row }) end
  function rank:barrier(stream) self.barrier_stream = stream end
  return rank
end

local function rows_of(rank, name)
  local rows = {}
  for _, pair in ipairs(rank.rows) do
    if pair[1] == name then rows[#rows + 1] = pair[2] end
  end
  return rows
end

local function run(index, measure)
  local one = section.new("demo", SPEC)
  function one.cases(_, world_size)
    return { { size = 8, mode = "a" }, { size = world_size * 8, mode = "b" } }
  end
  one.measure = measure
  local rank = new_rank(index)
  local opt = { cycles = 2, warmups = 1 }
  one:run(rank, { comm = "comm", stream = "stream", opt = opt })
  return rank
end

TestSection = {}

function TestSection.test_definition()
  local one = section.new("demo", SPEC)
  luaunit.assertEquals(one.columns, { "world_size", "size", "mode", "cycle", "t_us", "ok",
    "correct", "rank", "requested_world_size", "backend", "times_valid" })
  luaunit.assertEquals(one.keys, { "size", "mode", "requested_world_size", "world_size" })
  luaunit.assertEquals(one:metrics(), { "t_us", "ok" })
  luaunit.assertEquals(one.summary_file, "demo_summary.csv")
  luaunit.assertEquals(one:case_name({ size = 8, mode = "a" }), "size=8;mode=a")
  luaunit.assertErrorMsgContains("mode", one.case_name, one, { size = 8 })
  luaunit.assertEquals(one.source.path:match("[^/]*$"), "test_section.lua")
end

function TestSection.test_warmups_are_not_recorded()
  local seen = {}
  local rank = run(1, function(view, case)
    for cycle in view:cycles() do
      seen[#seen + 1] = cycle
      view:emit({ t_us = cycle * 10, ok = true })
    end
    luaunit.assertEquals(view.cycle, 0)
    view:barrier()
    luaunit.assertEquals({ view.comm, view.stream, view.case }, { "comm", "stream", case })
  end)
  luaunit.assertEquals(seen, { -1, 0, 1, -1, 0, 1 })
  luaunit.assertEquals(rank.barrier_stream, "stream")
  local rows = rows_of(rank, "demo")
  luaunit.assertEquals(#rows, 4)
  luaunit.assertEquals(rows[2], { size = 8, mode = "a", cycle = 1, rank = 1, world_size = 2,
    t_us = 10, ok = true })
  luaunit.assertEquals(rows[3].size, 16)
  luaunit.assertEquals(rows_of(rank, "progress"), {})
end

function TestSection.test_own_number_of_warmups()
  local count = 0
  run(1, function(view)
    for _ in view:cycles({ warmups = 0 }) do count = count + 1 end
  end)
  luaunit.assertEquals(count, 4)
end

function TestSection.test_each_numbers_a_list()
  local rank = run(1, function(view)
    for word in view:each({ "x", "y" }) do view:emit({ t_us = 1, ok = word }) end
  end)
  local rows = rows_of(rank, "demo")
  luaunit.assertEquals({ rows[1].cycle, rows[1].ok }, { 0, "x" })
  luaunit.assertEquals({ rows[2].cycle, rows[2].ok }, { 1, "y" })
end

function TestSection.test_contracts()
  local rank = run(1, function(view)
    for cycle in view:cycles() do
      view:check("holds", true)
      view:check("fails while warm", cycle >= 0)
    end
  end)
  local rows = rows_of(rank, "contracts")
  luaunit.assertEquals(#rows, 2 * 5)
  luaunit.assertEquals(rows[1], { section = "demo", case = "size=8;mode=a", cycle = -1,
    check = "fails while warm", correct = false, rank = 1, world_size = 2 })
  luaunit.assertEquals(rows[2].correct, true)
end

function TestSection.test_rank_0_tells_how_far_it_is()
  local rank = run(0, function(view)
    for _ in view:cycles() do view:emit({ t_us = 1, ok = true }) end
  end)
  local steps = rows_of(rank, "progress")
  luaunit.assertEquals(#steps, 2 * (1 + 1 + 2))
  luaunit.assertEquals(steps[1], { section = "demo", case = "size=8;mode=a", cycle = 0 })
end
