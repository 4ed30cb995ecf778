--- nclua runs and nclua compare on real runs: one setting that makes times several times
--- longer is found, what the difference is comes first, and the exit status tells.
local files = require("nclua.files")
local luaunit = require("luaunit")
local process = require("nclua.process")
local scratch = require("scratch")

local NCLUA = assert(os.getenv("NCLUA"), "NCLUA must name the program under test")

local function nclua(...)
  return assert(process.run({ NCLUA, ... }, { timeout_s = 120 }))
end

local function measure(root, id, cycles, env)
  local result = assert(process.run({ NCLUA, "interview", "--sections", "control",
    "--ranks", "2", "--cycles", cycles, "--control-iterations", "20", "--largest", "1M",
    "--root", root, "--run-id", id, "--backend", "cpu" }, { timeout_s = 120, env = env }))
  luaunit.assertTrue(result.ok, result.stderr)
  return root .. "/logs/interview_details/" .. id
end

local function need_real_times()
  luaunit.skipIf(os.getenv("NCLUA_SANITIZER"), "a sanitizer's times are not the program's")
end

-- Where others use the CPUs, too, a difference may hide; each run says how much they did.
local function need_quiet(runs)
  for _, dir in ipairs(runs) do
    local manifest = assert(files.read(dir .. "/manifest.txt"))
    local percent = tonumber(manifest:match("\ncpu_of_others_percent=(%d+)\n"))
    if not percent or percent > 30 then
      luaunit.skip("others used " .. (percent or "?") .. " percent of the CPUs during "
        .. dir .. ": whether the difference is found is not looked at")
    end
  end
end

-- A busy machine may hide one size, not all that are large.
local function large_are_slower(text)
  local count = 0
  for _, bytes in ipairs({ 262144, 524288, 1048576 }) do
    local verdict = text:match("bytes=" .. bytes .. " +time_us[^\n]- (%a+)\n")
    luaunit.assertNotNil(verdict, text)
    if verdict == "slower" then count = count + 1 end
  end
  luaunit.assertTrue(count > 0, text)
end

TestCompare = {}

-- LL moves a flag with every word: of large messages it makes several times the work.
function TestCompare.test_runs_and_compare()
  local folder <close> = scratch.folder()
  local a = measure(folder.path, "a", 40, { NCCL_PROTO = "Simple" })
  local b = measure(folder.path, "b", 40, { NCCL_PROTO = "LL" })
  local listed = nclua("runs", folder.path)
  luaunit.assertEquals(listed.stderr, "")
  luaunit.assertStrMatches(listed.stdout,
    "chapter +run .*\ninterview  a .* cpu .* 2%.%d+%.%d+ +2 +ok .*\ninterview  b .*\n")

  local argv = { "compare", a, a, "--margin", "1%", "--fail-if-slower", "0%" }
  local result = nclua(table.unpack(argv))
  luaunit.assertEquals(result.exit_code, 0)
  luaunit.assertStrContains(result.stdout, "Settings: no difference")
  luaunit.assertStrContains(result.stdout, "0 faster, 0 slower")
  luaunit.assertEquals(nclua("compare", a .. "," .. a, b).exit_code, 0)

  local page = folder.path .. "/c.html"
  argv = { "compare", a, b .. "/results.db", "--margin", "20%", "--html",
    page }
  result = nclua(table.unpack(argv))
  luaunit.assertEquals(result.stderr, "")
  luaunit.assertStrMatches(result.stdout, ".*variable +NCCL_PROTO +Simple +LL\n.*")
  need_real_times()
  need_quiet({ a, b })
  large_are_slower(result.stdout)
  luaunit.assertNil(result.stdout:match("bytes=1048576 [^\n]-faster\n"))

  local text = assert(io.open(page)):read("a")
  luaunit.assertStrContains(text, '<tr class="slower">')
  argv = { "compare", a, b, "--margin", "20%", "--markdown", "--fail-if-slower",
    "5%" }
  result = nclua(table.unpack(argv))
  luaunit.assertEquals(result.exit_code, 1)
  luaunit.assertStrMatches(result.stderr, "nclua compare: %d+ rows slower by more than 5%%,"
    .. " the most: control, .*\n")
  luaunit.assertStrContains(result.stdout, "| variable | NCCL_PROTO | Simple | LL |")
end

-- Three kinds of starts in turns, two of them of the same thing. Seven a side is what level
-- 0.01 among 16 rows asks for.
function TestCompare.test_starts_in_turns()
  need_real_times()
  local folder <close> = scratch.folder()
  local sides = { A = {}, B = {}, C = {} }
  for i = 1, 7 do
    for name, runs in pairs(sides) do
      runs[i] = measure(folder.path, name .. i, 8, { NCCL_PROTO = name == "B" and "LL"
        or "Simple" })
    end
  end
  local function compare(name)
    local result = nclua("compare", "--level", "0.01", table.concat(sides.A, ","),
      table.concat(sides[name], ","))
    luaunit.assertEquals(result.exit_code, 0, result.stderr)
    return result.stdout
  end
  local same = compare("C")
  luaunit.assertStrContains(same, "0 faster, 0 slower, 16 no evidence, 0 not comparable")
  luaunit.assertStrContains(same, "beyond a margin of 5%")
  local other = compare("B")
  luaunit.assertStrContains(other, ": 0 faster, ")
  need_quiet(sides.A)
  need_quiet(sides.B)
  large_are_slower(other)
end

TestUsage = {}

function TestUsage.test_what_cannot_be_compared()
  local folder <close> = scratch.folder()
  luaunit.assertEquals(nclua("runs", folder.path).stdout, "no runs\n")
  luaunit.assertEquals(nclua("runs", folder.path .. "/none").exit_code, 1)
  luaunit.assertEquals(nclua("compare", "one").exit_code, 2)
  luaunit.assertEquals(nclua("compare", "a", "b", "--level", "1").exit_code, 2)
  luaunit.assertEquals(nclua("compare", "a", "b", "--margin", "five").exit_code, 2)
  luaunit.assertEquals(nclua("compare", ",", "b").exit_code, 2)
  local result = nclua("compare", folder.path, folder.path)
  luaunit.assertEquals(result.exit_code, 1)
  luaunit.assertStrMatches(result.stderr, "nclua compare: .*results%.db: no such file\n")
  local file = assert(io.open(folder.path .. "/results.db", "w"))
  file:write("not a database, but long enough to be looked at")
  file:close()
  result = nclua("runs", folder.path)
  luaunit.assertEquals(result.exit_code, 1)
  luaunit.assertStrContains(result.stderr, "not a")
end
