--- Which charts a section's cases become: the series, their points, what is left out.
local charts = require("nclua.report_page.charts")
local luaunit = require("luaunit")
local map = require("nclua.report_page.map")

local function case(name, samples, world_size)
  return { section = "s", case = name, metric = "t_us", world_size = world_size or 2,
    samples = samples or { 1, 3, 2 }, all_correct = true, times_valid = true }
end

-- The kinds of a section's charts, and the names of the first one's series.
local function shape(cases)
  local kinds, names = {}, {}
  local list = charts.of_section("s", cases)
  for i, chart in ipairs(list) do kinds[i] = chart.kind end
  for i, series in ipairs(list[1].series) do names[i] = series.name end
  return { table.concat(kinds, " "), table.concat(names, "; ") }, list
end

TestCharts = {}

local CASES = {
  { "one line", { "bytes=8", "bytes=64" }, { "lines points", "median" } },
  { "a named field", { "bytes=8;mode=a", "bytes=64;mode=a", "bytes=8;mode=b" },
    { "lines points", "a; b" } },
  { "a word", { "sum bytes=8 (8 asked for) out", "sum bytes=8 (9 asked for) in",
    "sum bytes=64 in" }, { "lines points", "out; in" } },
  { "what goes with the size is no series", { "count=9;bytes=8", "count=1;bytes=64" },
    { "lines points", "median" } },
  { "decode has bars, too", { "tokens=1;bytes=8", "tokens=8;bytes=64" },
    { "lines bars points", "median" } },
  { "no size", { "a", "b" }, { "bars points", "2 ranks" } },
  { "one size", { "bytes=8" }, { "bars points", "2 ranks" } },
}

function TestCharts.test_series()
  for _, row in ipairs(CASES) do
    local cases = {}
    for i, name in ipairs(row[2]) do cases[i] = case(name) end
    luaunit.assertEquals(shape(cases), row[3], row[1])
  end
end

function TestCharts.test_points()
  local _, list = shape({ case("bytes=64", { 5, 1, 3 }), case("bytes=8", { 2, 2, 8 }) })
  luaunit.assertEquals(list[1].series[1].points, { { 8, 2, 2, 8 }, { 64, 3, 1, 5 } })
  luaunit.assertEquals(list[2].series[1].points[1], { 0, 5 / 3 })
end

function TestCharts.test_worlds_and_many_series()
  local cases = {}
  for i = 1, 10 do
    cases[#cases + 1] = case("bytes=8;choice=" .. i)
    cases[#cases + 1] = case("bytes=64;choice=" .. i)
  end
  local _, list = shape(cases)
  luaunit.assertEquals(#list[1].series, 8)
  luaunit.assertStrContains(list[1].note, "2 more series are in the table only")
  local worlds = { case("bytes=8", nil, 2), case("bytes=8", nil, 4), case("bytes=64") }
  luaunit.assertEquals(shape(worlds)[2], "2 ranks; 4 ranks")
end

-- One sample a case has no spread; a time of 0 has no place on a logarithmic axis.
function TestCharts.test_little_to_draw()
  local single = shape({ case("bytes=8", { 1 }), case("bytes=64", { 2 }) })
  luaunit.assertEquals(single[1], "lines")
  local cases = { case("bytes=8", { 0, 1 }), case("bytes=64"), case("bytes=128") }
  local _, list = shape(cases)
  luaunit.assertEquals(#list[1].series[1].points, 2)
  luaunit.assertEquals(charts.of_section("s", {}), {})
end

TestMap = {}

function TestMap.test_multiples_of_the_best_forced()
  local function row(bytes, algorithm, time)
    return { size_bytes = bytes, algorithm = algorithm, protocol = "LL", channels = 0,
      median_time_us = time }
  end
  local html = map.of("f", { row(8, "Ring", 10), row(8, "Tree", 15), row(8, "auto", 12),
    row(64, "Ring", 4), row(64, "Tree", 2), row(64, "NVLS") })
  luaunit.assertStrContains(html, '<td>Ring/LL</td><td class="n heat1" data-value="1.0">'
    .. 'best</td><td class="n heat4" data-value="2.0">2.00</td>')
  luaunit.assertStrContains(html, '<td>auto</td><td class="n heat3" data-value="1.2">1.20'
    .. "</td><td></td>")
  luaunit.assertNil(html:find("NVLS", 1, true))
  luaunit.assertNil(map.of("f", { { size_bytes = 8, median_time_us = 3 } }))
end
