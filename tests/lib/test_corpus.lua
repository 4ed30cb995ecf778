--- Public inputs, where they are at hand: every value of their expected.json, and our own
--- captures on two H200s.
local cjson = require("cjson")
local files = require("nclua.files")
local lfs = require("lfs")
local luaunit = require("luaunit")
local read = require("nclua.read")

local CORPUS = "../shared/corpus/"

local checks = require("lib.corpus_checks")
local file_checks = require("lib.corpus_files")

local function skip_without_corpus()
  if not lfs.attributes(CORPUS) then luaunit.skip("no public inputs at " .. CORPUS) end
end

-- What is in these files and is rightly reported as not understood.
local PROBLEMS = {
  ["s04-log-e2e-3xa100-2.7.3.log"] = 3, -- the program's own lines
  ["s12-tests-512xa100-slingshot-2.18.txt"] = 1, -- the remark that ranks were left out
  ["s18-log-4x4090-glued-2.28.9.log"] = 8, -- lines of two ranks in one
}

local function case_of(id, want)
  local case = { id = id, want = want, docs = {}, paths = {} }
  for _, name in ipairs(want.files) do
    local path = CORPUS .. name
    case.paths[#case.paths + 1] = path
    if name:find("%.tsv$") then
      case.schemas = file_checks.read_schemas(path)
    else
      local doc = assert(read.file(path))
      luaunit.assertEquals(doc.problem_count, PROBLEMS[name] or 0, name)
      table.insert(case.docs, doc)
    end
  end
  return case
end

TestCorpus = {}

function TestCorpus.test_every_expected_value()
  skip_without_corpus()
  local expected = cjson.decode(assert(files.read(CORPUS .. "expected.json")))
  local cases = 0
  for id, want in pairs(expected) do
    local case = case_of(id, want)
    for key, value in pairs(want) do
      local check = checks[key] or file_checks[key]
      luaunit.assertNotNil(check, "no check for " .. key)
      check(case, value)
    end
    cases = cases + 1
  end
  luaunit.assertEquals(cases, 29)
end

local H200 = CORPUS .. "h200x2/"

local function read_h200(name, problems)
  local doc = assert(read.file(H200 .. name))
  luaunit.assertEquals(doc.problem_count, problems or 0, name)
  return doc
end

-- Tables, rows of each, largest row, average.
local TABLES = {
  { "all_reduce_perf-float.txt", 1, 58, 1 << 30, 82.4324, 1 },
  { "all_reduce_perf-half.txt", 1, 24, 1 << 20, 14.1835, 1 },
  { "sweep-forced.txt", 6, 58, 1 << 30, 42.6424, 0 },
  { "plugin-interleaved.txt", 1, 1, 64 << 20, 35.9758, 10 },
}

function TestCorpus.test_tables_of_two_h200()
  skip_without_corpus()
  for _, case in ipairs(TABLES) do
    local name, tables, rows, largest, average, problems = table.unpack(case)
    local runs = read_h200(name, problems).tests.runs
    luaunit.assertEquals(#runs, tables, name)
    for _, run in ipairs(runs) do
      luaunit.assertEquals({ #run.rows, run.ranks, run.collective, run.complete },
        { rows, 2, "all_reduce", true }, name)
      luaunit.assertEquals(run.rows[#run.rows].size_bytes, largest, name)
    end
    luaunit.assertEquals(runs[1].average_busbw_gbps, average, name)
  end
end

function TestCorpus.test_cycles_and_titles_of_two_h200()
  skip_without_corpus()
  local runs = read_h200("sweep-forced.txt").tests.runs
  local titles = {}
  for i, run in ipairs(runs) do
    titles[i] = run.title
    luaunit.assertEquals({ run.rows[1].cycle, run.rows[30].cycle }, { 0, 1 })
  end
  luaunit.assertEquals(titles, { "Ring LL", "Ring LL128", "Ring Simple", "Tree LL",
    "Tree LL128", "Tree Simple" })
end

function TestCorpus.test_log_and_topology_of_two_h200()
  skip_without_corpus()
  local log = read_h200("nccl-2.28.3-tuning.log", 1).log -- the shell spoke too
  luaunit.assertEquals({ log.version, log.ranks, log.nodes, #log.selections, log.driver },
    { "2.28.3", 2, 1, 29, 13000 })
  local members = log.communicators[1].members
  luaunit.assertEquals({ #members, members[2].bus_id, members[1].timings_s.total },
    { 2, "70", 0.45 })
  local topology = read_h200("topo.xml").topology
  luaunit.assertEquals({ #topology.gpus, topology.gpus[1].sm }, { 2, 90 })
  local graphs = read_h200("graph.xml").topology
  for i, name in ipairs({ "ring", "tree" }) do
    local printed = members[1].graphs[name]
    luaunit.assertEquals(
      { graphs[i].channels, graphs[i].bw_intra, graphs[i].type_intra, #graphs[i].paths },
      { printed.channels, printed.bw_intra, printed.type_intra, #printed.paths }, name)
  end
end

-- Lines of an observing plugin that is not ours are no log and no table: all are told.
function TestCorpus.test_pretended_worlds()
  skip_without_corpus()
  for _, case in ipairs({ { 3, 1 }, { 4, 1 }, { 4, 2 }, { 8, 2 } }) do
    local ranks, local_ranks = table.unpack(case)
    local path = ("%spretend-world_%d_%d.log"):format(H200, ranks, local_ranks)
    local log = assert(read.file(path)).log
    luaunit.assertEquals({ log.ranks, log.nodes }, { ranks, ranks // local_ranks })
    local group = log.communicators[1]
    luaunit.assertEquals({ #log.communicators, #group.members, group.local_ranks },
      { 1, ranks, local_ranks })
    for rank, member in ipairs(group.members) do
      luaunit.assertEquals({ member.rank, member.state, member.graphs.ring.bw_intra },
        { rank - 1, "destroy complete", 1.2 })
    end
    luaunit.assertEquals(log.issue_count, 0)
  end
end
