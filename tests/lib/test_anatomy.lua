--- nclua.anatomy on steps made by hand: order, chunks, levels, drawings, counts.
local anatomy = require("nclua.anatomy")
local luaunit = require("luaunit")
local svg = require("nclua.anatomy.svg")
local text = require("nclua.anatomy.text")
local textbook = require("nclua.anatomy.textbook")
local xml = require("nclua.xml")

local eq = luaunit.assertEquals

local function step(rank, number, kind, chunk, from, to)
  local begin_ns = 1000 * (number + 1)
  return { rank = rank, channel = 0, step = number, kind = kind, offset = chunk * 8,
    bytes = 8, from = from, to = to, begin_ns = begin_ns, end_ns = begin_ns + 900,
    wait_ns = 300, delay_ns = rank == 1 and 100 or 0, call = 0,
    collective = "all_reduce", algorithm = "Ring", protocol = "LL128" }
end

--- Two ranks, two chunks of 8 bytes, in no order.
local function ring()
  return {
    step(1, 2, "recv", 0, { 0 }, {}),
    step(0, 0, "send", 1, {}, { 1 }),
    step(0, 1, "recv_reduce_copy_send", 0, { 1 }, { 1 }),
    step(1, 0, "send", 0, {}, { 0 }),
    step(0, 2, "recv", 1, { 1 }, {}),
    step(1, 1, "recv_reduce_copy_send", 1, { 0 }, { 0 }),
  }
end

local function model_of(steps)
  return assert(anatomy.of(steps, { ranks = 2, bytes = 16 }))
end

local function differing(steps)
  local model, names = model_of(steps), {}
  for _, finding in ipairs(textbook.check(model, textbook.count(model))) do
    if not finding.ok then names[#names + 1] = finding.what end
  end
  return names
end

TestAnatomy = {}

function TestAnatomy.test_order()
  local model = model_of(ring())
  local seen = {}
  for channel, rank, one in anatomy.each(model) do
    seen[#seen + 1] = { channel.number, rank, one.step, one.chunk, one.level }
  end
  eq(seen, { { 0, 0, 0, 1, 1 }, { 0, 0, 1, 0, 2 }, { 0, 0, 2, 1, 3 },
    { 0, 1, 0, 0, 1 }, { 0, 1, 1, 1, 2 }, { 0, 1, 2, 0, 3 } })
  eq({ model.begin_ns, model.end_ns, model.channels[1].length }, { 1000, 3900, 3 })
  eq(model.channels[1].chunks, { { offset = 0, bytes = 8 }, { offset = 8, bytes = 8 } })
end

function TestAnatomy.test_pairs()
  local model = model_of(ring())
  local ranks = model.channels[1].ranks
  eq(ranks[0][3].fed_by, { ranks[1][2] })
  eq(ranks[1][2].fed_by, { ranks[0][1] })
  eq(ranks[1][1].fed_by, {})
end

function TestAnatomy.test_nothing()
  local model, message, code = anatomy.of({}, { ranks = 2, bytes = 16 })
  eq({ model, code }, { nil, "EINVAL" }, message)
end

function TestAnatomy.test_grid()
  eq(text.grid(model_of(ring())), table.concat({
    "channel 0: 2 chunks of 8 bytes",
    "step  rank 0      rank 1",
    "   0  c1 →1       c0 →0",
    "   1  1→ +c0= →1  0→ +c1= →0",
    "   2  1→ c1=      0→ c0=",
  }, "\n"))
end

function TestAnatomy.test_timeline()
  local lines = {}
  for line in text.timeline(model_of(ring())):gmatch("[^\n]+") do
    lines[#lines + 1] = line
  end
  eq(#lines, 3)
  luaunit.assertStrContains(lines[1], "2.9 us")
  luaunit.assertStrContains(lines[2], "rank 0 channel 0 |░")
  luaunit.assertStrContains(lines[2], "░█")
  luaunit.assertNotStrContains(lines[2], "▒")
  luaunit.assertStrContains(lines[3], "|▒")
  eq(utf8.len(lines[2]), utf8.len(lines[3]))
end

function TestAnatomy.test_svg()
  local root = assert(xml.parse(svg.encode(model_of(ring()), "two ranks")))
  local counts = {}
  for _, child in ipairs(root.children) do
    local class = child.name .. "." .. (child.attributes.class or "")
    counts[class] = (counts[class] or 0) + 1
  end
  eq(root.name, "svg")
  eq({ counts["path.hop"], counts["line.hop"], counts["text.in"] }, { 4, 4, 6 })
  eq(counts["rect.box"], 6 + 6 + 3) -- steps above, steps below, delays
  eq(counts["rect.wait"], 6)
end

function TestAnatomy.test_counts()
  local counts = textbook.count(model_of(ring()))
  counts[2].wait_us = ("%.3f"):format(counts[2].wait_us)
  counts[2].delay_us = ("%.3f"):format(counts[2].delay_us)
  eq(counts[1].counters, nil)
  eq(counts[2], { rank = 1, steps = 3, sends = 2, bytes_sent = 16, bytes_received = 16,
    bytes_reduced = 8, wait_us = "0.900", delay_us = "0.300" })
end

--- Where the backend's own counters say something else than the steps.
function TestAnatomy.test_counters()
  local model, names = model_of(ring()), {}
  local counters = { bytes_sent = 16, bytes_received = 16, bytes_reduced = 7 }
  local counts = textbook.count(model, { [0] = counters, counters })
  for _, finding in ipairs(textbook.check(model, counts)) do
    if not finding.ok then names[#names + 1] = finding.what end
  end
  eq(names, { "bytes reduced by all ranks, counted in slots" })
end

function TestAnatomy.test_several_pieces()
  local steps = ring()
  steps[2].offsets, steps[2].bytes = { 8, 0 }, 16
  local model = model_of(steps)
  eq(model.channels[1].ranks[0][1].pieces, { 1, 0 })
  eq(anatomy.label(model.channels[1].ranks[0][1]), "c1,0 →1")
  eq(model.channels[1].chunks[1].bytes, 8)
end

function TestAnatomy.test_textbook()
  eq(differing(ring()), {})
end

--- Each thing that can be wrong is found.
function TestAnatomy.test_textbook_differs()
  local steps = ring()
  steps[1].bytes = 12
  eq(differing(steps), { "bytes received by all ranks" })
  steps = ring()
  steps[3].kind = "recv_copy_send"
  eq(differing(steps), { "bytes reduced by all ranks" })
  steps = ring()
  table.remove(steps, 2)
  eq(differing(steps), { "bytes sent by all ranks", "hops of every chunk, least",
    "rank 0 sends 2(n-1)/n x S" })
end
