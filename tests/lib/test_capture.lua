--- What the library chose, read back from the files of a run.
local capture = require("nclua.capture")
local files = require("nclua.files")
local luaunit = require("luaunit")
local scratch = require("scratch")

local LOG = "h:1:1 [0] NCCL INFO AllReduce: 4096 Bytes -> Algo RING proto LL "
  .. "channel{Lo..Hi}={0..3}\n"
local HEAD = "collective,bytes,ranks,nodes,ops,registered,channels,outcome,algorithm,"
  .. "protocol,tree/ll_us,ring/ll_us\n"
local ROW = "allreduce,4096,2,1,1,0,0,kept,ring,ll,9.5,7.25\n"

local function run_with(folder, contents)
  assert(files.make_folder(folder .. "/raw/nccl"))
  for name, text in pairs(contents) do
    assert(files.write(folder .. "/raw/nccl/" .. name, text))
  end
  return capture.read(folder, "sel")
end

TestCapture = {}

function TestCapture.test_logs_and_call_logs()
  local folder <close> = scratch.folder()
  local result = run_with(folder.path, {
    ["sel_h_1.log"] = LOG, ["sel_h_1.csv"] = HEAD .. ROW .. "# 3 calls lost here\n" .. ROW,
    ["sel_h_2.csv"] = HEAD .. ROW, ["other_h_3.csv"] = "not\nours,1\n",
  })
  luaunit.assertEquals({ #result.observed, result.lost }, { 3, 3 })
  local row = result.observed[1]
  luaunit.assertEquals({ row.collective, row.algorithm, row.protocol },
    { "all_reduce", "Ring", "LL" })
  local costs = capture.costs(row)
  luaunit.assertEquals({ costs.Tree.LL, costs.Ring.LL, costs.PAT.Simple },
    { 9.5, 7.25, -1 })
  luaunit.assertEquals(capture.choices(result, {}), { [4096] = { algorithm = "Ring",
    protocol = "LL", channels = 4, source = "log" } })
end

local DISAGREE = "4096 bytes: Ring/LL (log) and Tree/LL (backend) were chosen: ranks must "
  .. "agree"

function TestCapture.test_sources_must_agree()
  local folder <close> = scratch.folder()
  local result = run_with(folder.path, { ["sel_h_1.log"] = LOG })
  local said = { size_bytes = 4096, algorithm = "Ring", protocol = "LL", channels = 4 }
  luaunit.assertEquals(capture.choices(result, { said })[4096].source, "log")
  said.algorithm = "Tree"
  luaunit.assertErrorMsgContains(DISAGREE, capture.choices, result, { said })
  said.algorithm = "?" -- nothing is known
  luaunit.assertEquals(capture.choices(result, { said })[4096].algorithm, "Ring")
end
