--- nclua timeline and nclua sql over a small trace whose every number is known.
local cjson = require("cjson")
local luaunit = require("luaunit")
local process = require("nclua.process")
local programs = require("nclua.programs")
local scratch = require("scratch")
local sqlite = require("nclua.sqlite")

local NCLUA = os.getenv("NCLUA")
local PID = 1000

local function global(rank, thread) return (PID + rank) << 24 | (thread or 0) end

local function run(...)
  return assert(process.run({ NCLUA, ... }, { timeout_s = 120 }))
end

local function lines_of(text)
  local lines = {}
  for line in text:gmatch("[^\n]+") do lines[#lines + 1] = line end
  return lines
end

-- Two ranks, three collectives each: the second rank starts 2, 4, 6 µs late; calls 10 µs
-- before their kernels; a copy on another stream; a range around all.
local function fill(db)
  local kernels, calls, copies, ranges = {}, {}, {}, {}
  for rank = 0, 1 do
    for n = 1, 3 do
      local start = n * 100000 + rank * n * 2000
      kernels[#kernels + 1] = { start = start, ["end"] = n * 100000 + 50000,
        deviceId = rank, contextId = 1, streamId = 7, correlationId = n,
        globalPid = global(rank),
        demangledName = 1, shortName = 1, gridX = 2, gridY = 1, gridZ = 1, blockX = 544,
        blockY = 1, blockZ = 1, registersPerThread = 96, staticSharedMemory = 0,
        dynamicSharedMemory = 0, localMemoryPerThread = 0, localMemoryTotal = 0,
        gridId = n }
      calls[#calls + 1] = { start = start - 10000, ["end"] = start - 8000, eventClass = 1,
        globalTid = global(rank, 77), correlationId = n, nameId = 2, returnValue = 0 }
    end
    copies[#copies + 1] = { start = 150000, ["end"] = 160000, deviceId = rank,
      contextId = 1, streamId = 9, correlationId = 9, globalPid = global(rank),
      bytes = 40000, copyKind = 8 }
    ranges[#ranges + 1] = { start = 80000, ["end"] = 360000, eventType = 59,
      text = "step </script>", globalTid = global(rank, 77) }
  end
  db:insert("StringIds", {
    { id = 1, value = "ncclDevKernel_AllReduce_Sum_f32_TREE_SIMPLE" },
    { id = 2, value = "cuLaunchKernelEx" } })
  db:insert("CUPTI_ACTIVITY_KIND_KERNEL", kernels)
  db:insert("CUPTI_ACTIVITY_KIND_RUNTIME", calls)
  db:insert("CUPTI_ACTIVITY_KIND_MEMCPY", copies)
  db:insert("NVTX_EVENTS", ranges)
end

local function make_trace(folder)
  local path = folder .. "/t.sqlite"
  assert(run("--backend", "cpu", "--trace", path, "-e", "").ok)
  local db <close> = assert(sqlite.open(path))
  fill(db)
  return path
end

TestTimeline = {}

function TestTimeline.test_summary()
  local folder <close> = scratch.folder()
  local result = run("timeline", make_trace(folder.path))
  luaunit.assertEquals(result.stderr, "")
  local lines = lines_of(result.stdout)
  luaunit.assertEquals(lines[1], "0.280 ms, 2 processes")
  local function assert_line(...)
    local pattern = table.concat({ ... }, "%s+")
    for _, line in ipairs(lines) do
      if line:find(pattern) then return end
    end
    luaunit.fail(("no line %q in\n%s"):format(pattern, result.stdout))
  end
  local name = "ncclDevKernel_AllReduce_Sum_f32_TREE_SIMPLE"
  -- Durations 50, 50, 50 and 48, 46, 44 µs.
  assert_line(name, "6", "288", "49", "50", "50", "2", "544")
  -- ranks, grid; median wait, skew, its P95, from the last start to the end, the whole.
  assert_line(name, "3", "2", "2", "10", "4", "6", "46", "50")
  -- 3 kernels and a copy in 250 µs, of which 50 + 10 and 40, and 50 idle.
  assert_line("1000", "0", "4", "250", "64", "2", "50")
  assert_line("device to device", "2", "80000", "20", "4")
  assert_line("step </script>", "2", "560", "280", "280")
  assert_line("cuLaunchKernelEx", "6", "12", "2", "2")
end

function TestTimeline.test_chrome_json()
  local folder <close> = scratch.folder()
  local path = folder.path .. "/t.json"
  local result = run("timeline", "--chrome", path, make_trace(folder.path))
  luaunit.assertEquals(result.stderr, "")
  local document = cjson.decode(assert(io.open(path)):read("a"))
  local by_name = {}
  for _, event in ipairs(document.traceEvents) do
    if event.ph == "X" then
      by_name[event.name] = by_name[event.name] or {}
      table.insert(by_name[event.name], event)
    end
  end
  local kernels = by_name["ncclDevKernel_AllReduce_Sum_f32_TREE_SIMPLE"]
  luaunit.assertEquals(#kernels, 6)
  luaunit.assertEquals(kernels[1].pid, PID)
  luaunit.assertEquals(kernels[1].ts, 20) -- from the range's start on
  luaunit.assertEquals(kernels[1].dur, 50)
  luaunit.assertEquals(kernels[1].args.grid, 2)
  luaunit.assertEquals(#by_name["step </script>"], 2)
  local cut = run("timeline", "--most", "5", "--chrome", path, folder.path .. "/t.sqlite")
  luaunit.assertStrContains(cut.stderr, "11 events do not fit")
end

-- What a person would do, and what then must be seen.
local SCRIPT = [[<pre id="result"></pre><script>
const said = [];
const box = () => canvas.getBoundingClientRect();
const at = (type, x, y, more) => canvas.dispatchEvent(new (type === "wheel" ? WheelEvent :
  PointerEvent)(type, { clientX: box().left + x, clientY: box().top + y, bubbles: true,
  cancelable: true, ...more }));
const lane = data.lanes.find(l => l.kind === "stream");
const middle = e => LEFT + (e[START] + e[NS] / 2 - view.from) / view.scale;
said.push(["lanes", data.lanes.length]);
const before = view.scale, x = Math.round(middle(lane.events[1]));
const t = view.from + (x - LEFT) * view.scale;
at("wheel", x, lane.y + 3, { deltaY: -800 });
said.push(["zoomed", view.scale < before / 3]);
said.push(["held", Math.abs(view.from + (x - LEFT) * view.scale - t) < view.scale]);
at("pointermove", middle(lane.events[1]), lane.y + 3);
said.push(["tip", tip.style.display, tip.textContent]);
at("pointermove", middle(lane.events[1]), lane.y + 200);
said.push(["no tip", tip.style.display]);
const from = view.from;
at("pointerdown", 600, 60);
at("pointermove", 550, 60);
window.dispatchEvent(new PointerEvent("pointerup"));
said.push(["dragged", Math.abs(view.from - from - 50 * view.scale) < 1]);
at("dblclick", 500, 60);
said.push(["all", Math.abs(view.scale - before) < 1e-6]);
const pixels = context.getImageData(0, 0, canvas.width, canvas.height).data;
said.push(["painted", pixels.some(p => p !== 0)]);
document.getElementById("result").textContent = JSON.stringify(said);
</script>]]

local EXPECTED = {
  lanes = { 8 }, zoomed = { true }, held = { true }, dragged = { true }, all = { true },
  painted = { true }, ["no tip"] = { "none" },
  tip = { "block", "ncclDevKernel_AllReduce_Sum_f32_TREE_SIMPLE50.000 µs at 120.000 µs"
    .. "process 1000, device 0 stream 7grid 2, block 544correlation 2" },
}

local function browser()
  return programs.find("chromium") or programs.find("chromium-browser")
    or programs.find("google-chrome")
end

local function open_page(path, folder)
  return assert(process.run({ browser(), "--headless", "--no-sandbox", "--disable-gpu",
    "--window-size=1400,900", "--user-data-dir=" .. folder .. "/profile",
    "--virtual-time-budget=5000", "--enable-logging=stderr", "--dump-dom",
    "file://" .. path }, { timeout_s = 120 }))
end

function TestTimeline.test_page_in_a_browser()
  luaunit.skipIf(not browser(), "no Chromium on the PATH (Debian: chromium)")
  local folder <close> = scratch.folder()
  local path = folder.path .. "/t.html"
  luaunit.assertEquals(run("timeline", "--html", path, make_trace(folder.path)).stderr, "")
  local html = assert(io.open(path)):read("a")
  luaunit.assertNil(html:find("src=", 1, true)) -- it needs nothing else
  luaunit.assertNil(html:find("http", 1, true))
  local out = assert(io.open(path, "w"))
  out:write((html:gsub("</body>", function() return SCRIPT .. "</body>" end)))
  out:close()
  local result = open_page(path, folder.path)
  for line in result.stderr:gmatch("[^\n]+") do
    luaunit.assertNil(line:find("CONSOLE", 1, true), line)
  end
  local said = result.stdout:match('<pre id="result">(.-)</pre>')
  luaunit.assertNotNil(said, result.stdout:sub(-2000))
  local got = {}
  for _, row in ipairs(cjson.decode(said)) do
    got[row[1]] = table.move(row, 2, #row, 1, {})
  end
  luaunit.assertEquals(got, EXPECTED)
end

function TestTimeline.test_says_what_is_wrong()
  local folder <close> = scratch.folder()
  local text = folder.path .. "/x"
  local out = assert(io.open(text, "w"))
  out:write("not a database, but long enough to be looked at")
  out:close()
  for _, command in ipairs({ "timeline", "sql" }) do
    local missing = run(command, folder.path .. "/none")
    luaunit.assertEquals(missing.exit_code, 1)
    luaunit.assertStrContains(missing.stderr, "is not a file")
    local wrong = run(command, text)
    luaunit.assertEquals(wrong.exit_code, 1)
    luaunit.assertStrContains(wrong.stderr, "not a database")
    luaunit.assertEquals(run(command).exit_code, 2)
    luaunit.assertStrContains(run(command, "--help").stdout, "nclua " .. command)
  end
  local path = make_trace(folder.path)
  local result = run("timeline", "--html", "/nonexistent/x.html", path)
  luaunit.assertEquals(result.exit_code, 1)
  luaunit.assertStrContains(result.stderr, "/nonexistent")
end

function TestTimeline.test_an_empty_trace()
  local folder <close> = scratch.folder()
  local path = folder.path .. "/e.sqlite"
  assert(run("--backend", "cpu", "--trace", path, "-e", "").ok)
  luaunit.assertEquals(run("timeline", path).stdout, "nothing was recorded\n")
  luaunit.assertEquals(run("timeline", "--html", path .. ".html", path).exit_code, 0)
end

TestSql = {}

local function sql(...)
  local result = run("sql", ...)
  luaunit.assertEquals(result.stderr, "")
  luaunit.assertEquals(result.exit_code, 0)
  return result.stdout
end

function TestSql.test_prints_a_table()
  local folder <close> = scratch.folder()
  local path = make_trace(folder.path)
  luaunit.assertEquals(sql(path, [[select name, count(*) as n, median(us) as us, null as x
    from calls group by name]]), "name              n  us  x\ncuLaunchKernelEx  6   2\n")
  luaunit.assertEquals(sql("--csv", path, "select grid, block from kernels limit 1"),
    "grid,block\n2,544\n")
  local json = sql("--json", path, "select 1 as a, null as b, 'x' as c")
  luaunit.assertEquals(cjson.decode(json),
    { { a = 1, b = cjson.null, c = "x" } })
  luaunit.assertEquals(sql("--json", path, "select 1 as a where 0"), "[]\n")
  luaunit.assertStrContains(sql(path, "select '" .. ("y"):rep(80) .. "' as s"),
    ("y"):rep(57) .. "...")
  luaunit.assertStrContains(sql("--wide", path, "select '" .. ("y"):rep(80) .. "' as s"),
    ("y"):rep(80))
  luaunit.assertStrMatches(sql(path), ".*kernels +view of nclua +6\n.*")
end

function TestSql.test_only_reads_unless_told()
  local folder <close> = scratch.folder()
  local path = make_trace(folder.path)
  local result = run("sql", path, "delete from StringIds")
  luaunit.assertEquals(result.exit_code, 1)
  luaunit.assertStrContains(result.stderr, "readonly")
  luaunit.assertEquals(sql("--write", path, "create index i on StringIds(value)"), "")
  luaunit.assertStrContains(run("sql", path, "select nowhere").stderr, "no such column")
end

function TestSql.test_several_files_are_one()
  local folder <close> = scratch.folder()
  local a = make_trace(folder.path)
  local b = folder.path .. "/b.sqlite"
  assert(os.rename(a, b))
  a = make_trace(folder.path)
  luaunit.assertEquals(sql("--with", b, "--csv", a, "select count(*) as n from kernels"),
    "n\n12\n")
  luaunit.assertEquals(run("timeline", a, b).exit_code, 0)
end

-- nsys' exports of several ages, and nvprof's: what they lack is NULL, or no row.
local SCHEMAS = {
  { [[create table StringIds(id, value); create table CUPTI_ACTIVITY_KIND_KERNEL(start,
      "end", deviceId, streamId, correlationId, demangledName, gridX);
      insert into StringIds values (5, 'k'); insert into CUPTI_ACTIVITY_KIND_KERNEL
      values (10, 3010, 0, 7, 1, 5, 4)]], "k,3,4,\n" },
  { [[create table StringTable(_id_, value); create table CUPTI_ACTIVITY_KIND_KERNEL(_id_,
      start, "end", deviceId, gridX, name); insert into StringTable values (1, 'k');
      insert into CUPTI_ACTIVITY_KIND_KERNEL values (1, 10, 3010, 0, 4, 1)]], "k,3,4,\n" },
  { [[create table CUPTI_ACTIVITY_KIND_KERNEL(start, "end", globalPid, shortName);
      insert into CUPTI_ACTIVITY_KIND_KERNEL values (10, 3010, 16777216 * 9, 'k')]],
    "k,3,,9\n" },
}

function TestSql.test_other_schemas()
  for i, schema in ipairs(SCHEMAS) do
    local folder <close> = scratch.folder()
    local path = folder.path .. "/n.sqlite"
    do
      local db <close> = assert(sqlite.open(path))
      assert(db:exec(schema[1]))
    end
    luaunit.assertEquals(sql("--csv", path, "select name, us, grid, process from kernels"),
      "name,us,grid,process\n" .. schema[2], i)
    luaunit.assertEquals(run("timeline", path).exit_code, 0)
  end
end

function TestSql.test_queries_of_the_page_run()
  local folder <close> = scratch.folder()
  local path = make_trace(folder.path)
  local page, count = assert(io.open("docs/queries.md")):read("a"), 0
  for query in page:gmatch("```sql\n(.-)```") do
    sql(path, query)
    count = count + 1
  end
  luaunit.assertTrue(count > 12, count)
  local skew = page:match("How far apart.-```sql\n(.-)```")
  luaunit.assertStrContains(sql("--csv", path, skew),
    "ncclDevKernel_AllReduce_Sum_f32_TREE_SIMPLE,3,2,6,44")
end
