--- report.html of real runs: every chapter writes it, it is the same when made again, and a
--- browser draws it, sorts its tables and asks the network for nothing.
local cjson = require("cjson")
local files = require("nclua.files")
local lfs = require("lfs")
local luaunit = require("luaunit")
local process = require("nclua.process")
local programs = require("nclua.programs")
local scratch = require("scratch")

local NCLUA = assert(os.getenv("NCLUA"), "NCLUA must name the program under test")

local function nclua(...)
  return assert(process.run({ NCLUA, ... }, { timeout_s = 240 }))
end

local function measure(root, chapter, ...)
  local result = nclua(chapter, "--root", root, "--run-id", "r", "--cycles", "3", ...)
  luaunit.assertTrue(result.ok, result.stderr)
  return assert(result.stdout:match("run_dir=([^\n]+)"))
end

local function interview(root)
  return measure(root, "interview", "--warmups", "1", "--largest", "64K",
    "--fragment-total", "160K", "--decode-collectives", "3")
end

-- What a person would do, and what then must be seen.
local SCRIPT = [=[<pre id="result"></pre><script>
const seen = {};
seen.canvases = canvases.length;
seen.painted = canvases.filter(c => c.getContext("2d").getImageData(0, 0, c.width, c.height)
  .data.some(p => p !== 0)).length;
seen.named = canvases.filter(c => c.getAttribute("aria-label")).length;
seen.fetched = performance.getEntriesByType("resource").length;
seen.tables = document.querySelectorAll("table").length;
seen.unsorted = 0;
const isSorted = (list, sign) => list.every((v, i) => !i || sign * (v - list[i - 1]) >= 0);
for (const table of document.querySelectorAll("table")) {
  [...table.tHead.rows[0].cells].forEach((heading, column) => {
    const values = () => [...table.tBodies[0].rows].map(r => r.cells[column].dataset.value);
    if (values().some(v => v === undefined)) return;
    for (const [word, sign] of [["ascending", 1], ["descending", -1]]) {
      heading.querySelector("button").click();
      if (heading.getAttribute("aria-sort") !== word || !isSorted(values(), sign))
        seen.unsorted++;
    }
    seen.sorted = (seen.sorted ?? 0) + 1;
  });
}
seen.dead = [...document.querySelectorAll("nav a")]
  .filter(a => !document.querySelector(a.getAttribute("href"))).length;
document.getElementById("result").textContent = JSON.stringify(seen);
</script>]=]

local function browser()
  return programs.find("chromium") or programs.find("chromium-browser")
    or programs.find("google-chrome")
end

local function open_page(path, profile)
  local result = assert(process.run({ browser(), "--headless", "--no-sandbox",
    "--disable-gpu", "--window-size=1300,900", "--user-data-dir=" .. profile,
    "--virtual-time-budget=5000", "--enable-logging=stderr", "--dump-dom",
    "file://" .. path }, { timeout_s = 120 }))
  for line in result.stderr:gmatch("[^\n]+") do
    luaunit.assertNil(line:find("CONSOLE", 1, true), line)
  end
  local said = result.stdout:match('<pre id="result">(.-)</pre>')
  luaunit.assertNotNil(said, result.stdout:sub(-2000))
  return cjson.decode(said)
end

local function look_at(run_dir, folder)
  local page = assert(files.read(run_dir .. "/report.html"))
  local path = folder .. "/page.html"
  assert(files.write(path, (page:gsub("</body>", function()
    return SCRIPT .. "</body>"
  end))))
  local said = open_page(path, folder .. "/profile")
  luaunit.assertEquals(said.painted, said.canvases)
  luaunit.assertEquals(said.named, said.canvases)
  luaunit.assertEquals({ said.fetched, said.unsorted, said.dead }, { 0, 0, 0 })
  luaunit.assertTrue(said.sorted > 5 and said.tables > 5)
  return said
end

TestReport = {}

function TestReport.test_interview()
  local folder <close> = scratch.folder()
  local run_dir = interview(folder.path)
  local page = assert(files.read(run_dir .. "/report.html"))
  for _, text in ipairs({ "<h1>NCCL Interview Detail Experiments</h1>", "Times: decode",
    "decode_summary.csv", "Evidence boundary", "Run it again", "Manifest", "MIT licence",
    "nclua interview --ranks 4 --decode-collectives 3 --fragment-total 160K" }) do
    luaunit.assertStrContains(page, text)
  end
  -- It is there before the manifest says that all is there.
  local function written(name)
    return lfs.attributes(run_dir .. "/" .. name, "modification")
  end
  luaunit.assertTrue(written("report.html") <= written("manifest.txt"))
  local again = nclua("report", run_dir)
  luaunit.assertEquals(again.stdout, "wrote " .. run_dir .. "/report.html\n")
  luaunit.assertTrue(files.read(run_dir .. "/report.html") == page, "not the same again")
  for tag in page:gmatch("<[^>]*>") do -- it needs nothing else
    luaunit.assertNil(tag:match("^<[%a]+ [^>]*src=") or tag:match('href="[^#]'), tag)
  end
end

function TestReport.test_interview_in_a_browser()
  luaunit.skipIf(not browser(), "no Chromium on the PATH (Debian: chromium)")
  local folder <close> = scratch.folder()
  local said = look_at(interview(folder.path), folder.path)
  luaunit.assertTrue(said.canvases >= 10, said.canvases)
end

function TestReport.test_tuning_in_a_browser()
  luaunit.skipIf(not browser(), "no Chromium on the PATH (Debian: chromium)")
  local folder <close> = scratch.folder()
  local run_dir = measure(folder.path, "tuning", "--backend", "cpu", "--largest", "64K",
    "--sweep-cycles", "2", "--iterations", "5", "--skip-nsys")
  local page = assert(files.read(run_dir .. "/report.html"))
  luaunit.assertStrContains(page, "Winners (sweep_summary.csv)")
  luaunit.assertStrContains(page, "regret of the selection")
  luaunit.assertTrue(look_at(run_dir, folder.path).canvases >= 6)
end

-- Of an old run there may be no more than its database, and any text may be in it.
function TestReport.test_database_alone()
  local folder <close> = scratch.folder()
  local run_dir = interview(folder.path)
  local bare = folder.path .. "/bare"
  assert(files.make_folder(bare))
  assert(files.write(bare .. "/results.db", files.read(run_dir .. "/results.db")))
  local sql = "insert into note values ('<script>alert(1)</script>')"
  local script = ('assert(require("nclua.sqlite").open(%q):exec(%q))'):format(
    bare .. "/results.db", sql)
  luaunit.assertEquals(nclua("-e", script).stderr, "")
  luaunit.assertEquals(nclua("report", bare).stderr, "")
  local page = assert(files.read(bare .. "/report.html"))
  luaunit.assertStrContains(page, "Times: decode")
  luaunit.assertStrContains(page, "&lt;script&gt;alert(1)")
  luaunit.assertNil(page:find("<script>alert", 1, true))
end

function TestReport.test_says_what_is_wrong()
  local folder <close> = scratch.folder()
  local result = nclua("report", folder.path)
  luaunit.assertEquals(result.exit_code, 1)
  luaunit.assertStrMatches(result.stderr, "nclua report: .*results%.db: no such file\n")
  luaunit.assertEquals(nclua("report").exit_code, 2)
end
