--- Rules from winners, the proof that they gain something, and `nclua tune` end to end on a
--- CPU whose library is made to choose badly.
local combination = require("nclua.combination")
local csv = require("nclua.csv")
local files = require("nclua.files")
local luaunit = require("luaunit")
local manifest = require("nclua.manifest")
local mix = require("nclua.tune.mix")
local process = require("nclua.process")
local proof = require("nclua.tune.proof")
local rules = require("nclua.tune.rules")
local scratch = require("scratch")

local NCLUA = assert(os.getenv("NCLUA"), "NCLUA must name the program under test")

-- Ten cycles around a time.
local function around(time)
  local times = {}
  for i = 1, 10 do times[i] = time * (1 + i / 1000) end
  return times
end

local function entry(name, time)
  return { name = name, times = around(time), case = assert(combination.parse(name)) }
end

-- winners.of's result: { bytes, auto's time, { name, time }, ... }, the fastest first, and
-- the names of those that are as fast.
local function winners_of(list)
  local result = { rows = {}, rankings = {}, tied = {}, autos = {} }
  for i, one in ipairs(list) do
    local bytes = one[1]
    result.rows[i] = { size_bytes = bytes }
    result.autos[bytes], result.rankings[bytes] = entry("auto", one[2]), {}
    result.tied[bytes] = {}
    for e = 3, #one do
      local added = entry(one[e][1], one[e][2])
      table.insert(result.rankings[bytes], added)
      if one[e][3] then table.insert(result.tied[bytes], added) end
    end
  end
  return result
end

local OPTIONS = { threshold_percent = 3, confidence = 0.99, is_paired = true }

TestTune = {}

function TestTune.test_rules()
  local list = rules.of(winners_of({
    { 1024, 10, { "Ring/LL", 10 } }, -- no gain
    { 4096, 10, { "Ring/LL128", 9.8 } }, -- less than the threshold
    { 16384, 10, { "Ring/LL128", 9 } },
    { 65536, 10, { "Tree/LL", 7.9 }, { "Ring/LL128", 8, true } }, -- no change for nothing
    { 262144, 10, { "Tree/Simple/2", 8 } },
  }), OPTIONS)
  luaunit.assertEquals(#list, 2)
  local first, second = list[1], list[2]
  luaunit.assertEquals({ first.name, first.min_bytes, first.max_bytes, first.sizes },
    { "Ring/LL128", 8193, 131072, { 16384, 65536 } })
  luaunit.assertAlmostEquals(first.gain_percent, 10, 1e-9)
  luaunit.assertEquals({ second.channels, second.min_bytes, second.max_bytes },
    { 2, 131073, 262144 })
  luaunit.assertEquals(rules.at(list, 8192), nil)
  luaunit.assertEquals(rules.at(list, 8193), first)
  luaunit.assertEquals(rules.at(list, 262144), second)
  luaunit.assertNil(rules.at(list, 262145))
  luaunit.assertEquals(rules.encode(list, { ranks = 4, nodes = 1 }, { "a\nb" }), "# a b\n"
    .. "colltype,minbytes,maxbytes,algorithm,protocol,channels,nNodes,nRanks,numPipeOps,"
    .. "regBuff\nallreduce,8193,131072,ring,ll128,-1,1,4,-1,-1\n"
    .. "allreduce,131073,262144,tree,simple,2,1,4,-1,-1\n")
end

function TestTune.test_a_gain_by_chance_makes_no_rule()
  local winners = winners_of({ { 1024, 10, { "Ring/LL", 8 } } })
  winners.rankings[1024][1].times = { 5, 15, 5, 15, 5, 15, 5, 15, 5, 5 }
  luaunit.assertEquals(rules.of(winners, OPTIONS), {})
end

function TestTune.test_mix()
  luaunit.assertEquals(mix.parse("8K:160, 1M"),
    { { bytes = 8192, count = 160 }, { bytes = 1 << 20, count = 1 } })
  luaunit.assertEquals(mix.parse(""), {})
  for _, text in ipairs({ "8K:", "x:1", "6:1", "8K:-1", "2:1" }) do
    local none, message = mix.parse(text)
    luaunit.assertNil(none, text)
    luaunit.assertStrContains(message, "'" .. text .. "'")
  end
  local entries = assert(mix.parse("1K:10,4K:1"))
  local result, auto, tuned = mix.compare(entries,
    { [1024] = { 1, 1, 1, 1, 1 }, [4096] = { 10, 10, 10, 10, 10 } },
    { [1024] = { 2, 2, 2, 2, 2 }, [4096] = { 5, 5, 5, 5, 5 } }, {})
  luaunit.assertEquals({ auto[1], tuned[5], result.verdict }, { 20, 25, "slower" })
end

function TestTune.test_sizes_of_the_proof()
  local list = { { min_bytes = 8, max_bytes = 40 }, { min_bytes = 41, max_bytes = 64 } }
  luaunit.assertEquals(proof.sizes({ 4, 8, 16, 32, 64 }, list),
    { 4, 8, 12, 16, 24, 32, 64 })
  luaunit.assertEquals(proof.sizes({ 8, 12 }, list), { 8, 12 })
end

function TestTune.test_only_confirmed_rules_are_kept()
  local list = {
    { name = "good", min_bytes = 1, max_bytes = 20 },
    { name = "partly slower", min_bytes = 21, max_bytes = 200 },
    { name = "unclear", min_bytes = 201, max_bytes = 400 },
  }
  local times = { auto = {}, tuned = {} }
  for bytes, tuned in pairs({ [10] = 8, [20] = 10, [40] = 8, [100] = 12, [300] = 10,
    [500] = 10 }) do
    times.auto[bytes], times.tuned[bytes] = around(10), around(tuned)
  end
  local rows = proof.judge(times, list, { 10, 40, 100, 300, 500 }, {})
  local verdicts = {}
  for i, row in ipairs(rows) do verdicts[i] = row.tuned_is end
  luaunit.assertEquals(verdicts,
    { "faster", "unclear", "faster", "slower", "unclear", "unclear" })
  luaunit.assertEquals({ rows[2].is_new_size, rows[1].is_new_size }, { true, false })
  luaunit.assertAlmostEquals(rows[1].gain_percent, 20, 1e-9)
  local kept, dropped = proof.confirmed(rows, list)
  luaunit.assertEquals({ #kept, kept[1].name }, { 1, "good" })
  luaunit.assertEquals(dropped[1], "partly slower for 21 to 200 bytes: faster at 1 sizes, "
    .. "slower at 1, unclear at 0")
end

-- Constants that make the library believe in LL for large messages, which moves twice as
-- many bytes as Simple.
local WRONG = "Ring LL 0.1 0.1 900 0.1 900\n"

local function run(folder, ...)
  local constants = folder .. "/constants.conf"
  assert(files.write(constants, WRONG))
  return assert(process.run({ NCLUA, "tune", "--root", folder, "--run-id", "r",
    "--algorithms", "Ring", "--protocols", "LL,Simple", "--smallest", "1M",
    "--largest", "2M", "--iterations", 8, ... },
    { env = { NCLUA_CPU_CONSTANTS = constants, NCCL_PROTO = "LL" }, timeout_s = 200 }))
end

-- A loaded machine may hide a gain of two: then the run is right to make no rule, and there
-- is another.
local function run_until_rules(folder)
  for attempt = 1, 6 do
    local root = folder .. "/" .. attempt
    assert(files.make_folder(root))
    local result = run(root, "--cycles", 9, "--proof-cycles", 9, "--confidence", 0.9,
      "--mix", "1M:3,1536K:2", "--apply")
    luaunit.assertEquals(result.exit_code, 0, result.stderr)
    local dir = root .. "/logs/tune/r"
    if files.exists(dir .. "/tuner_rules.csv") then return result, dir end
  end
  error("no rule in six runs")
end

function TestTune.test_end_to_end()
  local folder <close> = scratch.folder()
  local result, dir = run_until_rules(folder.path)
  luaunit.assertEquals(result.stdout,
    ("export NCCL_TUNER_PLUGIN=%s/libnccl-tuner-nclua.so\n"
      .. "export NCLUA_TUNER_RULES=%s/tuner_rules.csv\n"):format(dir, dir))
  for _, row in ipairs(assert(csv.read(dir .. "/winners.csv"))) do
    luaunit.assertEquals({ row.auto_algorithm, row.auto_protocol }, { "Ring", "LL" })
  end
  local text = assert(files.read(dir .. "/tuner_rules.csv"))
  luaunit.assertStrMatches(text, ".*\nallreduce,%d+,%d+,ring,simple,%-1,1,4,%-1,%-1\n")
  local faster = 0
  for _, row in ipairs(assert(csv.read(dir .. "/gain.csv"))) do
    if row.tuned_is == "faster" then faster = faster + 1 end
    luaunit.assertAlmostEquals(row.gain_percent, (1 - 1 / row.time_ratio) * 100, 1e-6)
  end
  luaunit.assertTrue(faster >= 1)
  local summary = assert(files.read(dir .. "/summary.md"))
  luaunit.assertStrContains(summary, "## The mix\n\n2 kinds of messages: ")
  luaunit.assertStrContains(summary, result.stdout)
  luaunit.assertEquals(manifest.read(dir).steering, "live")
end

function TestTune.test_nothing_to_gain()
  local folder <close> = scratch.folder()
  local result = run(folder.path, "--cycles", 5, "--threshold", 99, "--apply")
  luaunit.assertEquals({ result.exit_code, result.stdout }, { 0, "" }, result.stderr)
  luaunit.assertStrContains(result.stderr, "tune: no rule was confirmed")
  local dir = folder.path .. "/logs/tune/r"
  luaunit.assertFalse(files.exists(dir .. "/tuner_rules.csv"))
  luaunit.assertStrContains(files.read(dir .. "/summary.md"), "No rule: nothing is faster")
end

function TestTune.test_usage()
  local folder <close> = scratch.folder()
  local result = run(folder.path, "--mix", "6:2")
  luaunit.assertEquals(result.exit_code, 1)
  luaunit.assertStrContains(result.stderr, "--mix: '6:2' is no entry of a mix")
end
