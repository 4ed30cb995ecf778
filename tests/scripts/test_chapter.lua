--- What the chapter library promises, seen through small chapters: exit status, the line
--- on standard error, and which files there are.
local csv = require("nclua.csv")
local files = require("nclua.files")
local luaunit = require("luaunit")
local process = require("nclua.process")
local scratch = require("scratch")

local NCLUA = assert(os.getenv("NCLUA"), "NCLUA must name the program under test")

-- A chapter with one section, whose measure is FAULT.
local CHAPTER = [[
--- A demonstration.
local chapter = require("nclua.chapter")
local demo = require("nclua.section").new("demo", {
  title = "Demo", columns = "world_size size cycle t_us", keys = "size",
  case = "size={size}",
  metric = "t_us", summary = "world_size size cycles median_us correct",
  report = { { "size", "size" }, { "median us", "median_us", "%.1f" } },
})
function demo.cases() return { { size = 1 }, { size = 2 } } end
function demo.measure(rank, case)
  for cycle in rank:cycles() do
    FAULT
    rank:emit({ t_us = 10 * case.size + rank.index + cycle })
    rank:check("holds", true)
  end
end
function demo.summarise(case)
  local t = case:slowest("t_us")
  return { cycles = t.samples, median_us = t.median }, t
end
local one = chapter.new({ name = "demo", experiment = "demo", title = "Demo",
  sections = { demo }, options = { { "size", "1K", "a size", kind = "size" } } })
function one.measure(run) run:world("world2", 2, { demo }) end
one:main()
]]

local function run(folder, fault, ...)
  local path = folder .. "/demo.lua"
  assert(files.write(path, (CHAPTER:gsub("FAULT", function() return fault end))))
  local args = { NCLUA, path, "--root", folder, "--run-id", "r", "--cycles", 2, "--warmups",
    1, "--timeout", 10, ... }
  return assert(process.run(args, { timeout_s = 60 })), folder .. "/logs/demo/r"
end

local function last_line(text)
  return text:match("([^\n]*)\n$")
end

TestChapter = {}

function TestChapter.test_success()
  local folder <close> = scratch.folder()
  local result, dir = run(folder.path, "")
  luaunit.assertEquals(result.exit_code, 0, result.stderr)
  luaunit.assertStrContains(result.stdout, "| 2 | 21.5 |")
  luaunit.assertStrContains(result.stdout, "run_dir=" .. dir)
  local rows = assert(csv.read(dir .. "/demo_summary.csv"))
  luaunit.assertEquals(rows[2], { world_size = 2, size = 2, cycles = 2, median_us = 21.5,
    correct = true, requested_world_size = 2, backend = "cpu", times_valid = true })
  luaunit.assertTrue(files.exists(dir .. "/manifest.txt"))
  luaunit.assertStrContains(result.stderr, "[  0%] world2: demo size=1\n")
end

function TestChapter.test_a_failed_contract_fails_the_run()
  local folder <close> = scratch.folder()
  local result, dir = run(folder.path,
    "if rank.index == 1 and cycle == 1 then rank:check('two and two', false) end")
  luaunit.assertEquals(result.exit_code, 1)
  luaunit.assertEquals(last_line(result.stderr),
    "demo: 2 of 10 contracts failed, the first: demo, size=1, rank 1 of 2, cycle 1: "
      .. "two and two; evidence: " .. dir)
  luaunit.assertTrue(files.exists(dir .. "/raw/results/world2/rank1_contracts.csv"))
  luaunit.assertFalse(files.exists(dir .. "/manifest.txt"))
  luaunit.assertFalse(files.exists(dir .. "/demo_summary.csv"))
end

function TestChapter.test_an_error_in_a_rank_names_it_and_its_line()
  local folder <close> = scratch.folder()
  local result, dir = run(folder.path,
    "if rank.index == 1 and cycle == 0 then error('oh') end")
  luaunit.assertEquals(result.exit_code, 1)
  local said = last_line(result.stderr)
  luaunit.assertStrMatches(said, "demo: world2 failed: rank 1: .*lua:12: oh; evidence: .*")
  luaunit.assertFalse(files.exists(dir .. "/manifest.txt"))
  luaunit.assertFalse(files.exists(dir .. "/raw/results/world2"))
  luaunit.assertNil(result.stderr:find("stack traceback"))
end

function TestChapter.test_traceback_on_request()
  local folder <close> = scratch.folder()
  local result = run(folder.path, "error('oh')", "--traceback")
  luaunit.assertEquals(result.exit_code, 1)
  luaunit.assertStrContains(result.stderr, "stack traceback")
end

function TestChapter.test_a_misspelt_column_is_an_error()
  local folder <close> = scratch.folder()
  local result = run(folder.path, "rank:emit({ t_ms = 1 })")
  luaunit.assertEquals(result.exit_code, 1)
  luaunit.assertStrContains(last_line(result.stderr), "section demo has no column 't_ms'")
  local other <close> = scratch.folder()
  result = run(other.path, "rank:emit({})")
  luaunit.assertStrContains(last_line(result.stderr), "section demo: no value for 't_us'")
end

function TestChapter.test_usage()
  local folder <close> = scratch.folder()
  local result = run(folder.path, "", "--sice", "2K")
  luaunit.assertEquals(result.exit_code, 2)
  luaunit.assertEquals(result.stderr,
    "demo: unknown option '--sice'. Did you mean '--size'? (try --help)\n")
  result = run(folder.path, "", "--help")
  luaunit.assertEquals(result.exit_code, 0)
  luaunit.assertStrContains(result.stdout, "A demonstration.")
  luaunit.assertStrContains(result.stdout, "a size (default: 1K)")
  luaunit.assertFalse(files.exists(folder.path .. "/logs"))
end

function TestChapter.test_a_run_is_never_overwritten()
  local folder <close> = scratch.folder()
  run(folder.path, "")
  local result, dir = run(folder.path, "")
  luaunit.assertEquals(result.exit_code, 1)
  luaunit.assertStrContains(result.stderr, dir .. " exists: choose another --run-id")
end

function TestChapter.test_in_the_world_of_a_launcher()
  local folder <close> = scratch.folder()
  run(folder.path, "", "--help") -- writes the script
  local function start(index)
    local argv = { NCLUA, folder.path .. "/demo.lua", "--root", folder.path, "--cycles", 2 }
    return assert(process.spawn(argv, { timeout_s = 60, env = { RANK = index,
      WORLD_SIZE = 3, LOCAL_WORLD_SIZE = 3, MASTER_PORT = "chapter" .. folder.path } }))
  end
  local all = { start(0), start(1), start(2) }
  for i, one in ipairs(all) do all[i] = assert(one:wait()) end
  for _, result in ipairs(all) do luaunit.assertTrue(result.ok, result.stderr) end
  luaunit.assertStrContains(all[1].stdout, "a world of 3 ranks, made by torchrun")
  luaunit.assertStrContains(all[1].stdout, "| 2 | 22.5 |")
  luaunit.assertEquals({ all[2].stdout, all[3].stderr }, { "", "" })
end

function TestChapter.test_affinity()
  local folder <close> = scratch.folder()
  local result = run(folder.path, "", "--cpu-affinity", "0")
  luaunit.assertEquals(result.exit_code, 1)
  luaunit.assertStrContains(result.stderr, "--cpu-affinity: 1 CPUs for 2 ranks")
  local other <close> = scratch.folder()
  result = run(other.path, "", "--cpu-affinity", "0,0")
  luaunit.assertEquals(result.exit_code, 0, result.stderr)
end

function TestChapter.test_the_example_of_the_manual()
  local folder <close> = scratch.folder()
  local page = assert(files.read("docs/reference/chapter.md"))
  local path = folder.path .. "/demo.lua"
  assert(files.write(path, page:match("```lua\n(.-)```")))
  local result = assert(process.run({ NCLUA, path, "--root", folder.path, "--cycles", 2 }))
  luaunit.assertEquals(result.exit_code, 0, result.stderr)
  luaunit.assertStrContains(result.stdout, "## Tiny AllReduce")
  luaunit.assertStrContains(result.stdout, "All 8 per-rank contracts passed")
end
