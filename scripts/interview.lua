--- The interview labs: what a collective costs, what waits for it, and what it rounds.
---
--- Five small experiments on a world of four ranks, decode again on two, and nccl-tests'
--- definition of time as the control. A cycle counts with its slowest rank. Raw rows,
--- tables, results.db and summary.md go to ROOT/logs/interview_details/RUN_ID/.
local chapter = require("nclua.chapter")
local environment = require("nclua.environment")
local nccl_tests = require("nclua.nccl_tests")

local async = require("interview.async")
local control = require("interview.control")
local decode = require("interview.decode")
local decomposition = require("interview.decomposition")
local fragmentation = require("interview.fragmentation")
local numerics = require("interview.numerics")

local interview = chapter.new({
  name = "interview",
  experiment = "interview_details",
  title = "NCCL Interview Detail Experiments",
  sections = { async, decomposition, fragmentation, decode, control, numerics },
  options = {
    { "ranks", 4, "ranks of the full world", min = 1 },
    { "decode_collectives", 160, "AllReduces in one decode replay", min = 1,
      oversubscribed = 8 },
    { "graph", false, "decode also as one CUDA graph" },
    { "fragment_total", "80M", "payload of the fragmentation section", kind = "size" },
    { "fragment_calls", 1280, "most calls that it is split into", min = 1,
      oversubscribed = 80 },
    { "control_iterations", 100, "calls in one measurement of the control", min = 1,
      oversubscribed = 5 },
    { "nccl_tests", "all_reduce_perf", "nccl-tests' program, for the control" },
    { "nccl_source", "", "NCCL's source, whose commit the manifest shall name" },
  },
})

local SMI = "index,name,uuid,driver_version,memory.total,pci.bus_id"

local function capture_artifacts(run)
  run:capture("nvidia_smi_query.txt",
    { "nvidia-smi", "--query-gpu=" .. SMI, "--format=csv,noheader" })
  run:fact("topology", run:capture("nvidia_smi_topo.txt", { "nvidia-smi", "topo", "-m" }))
  run:capture("ibv_devinfo.txt", { "ibv_devinfo" })
end

function interview.measure(run, opt)
  capture_artifacts(run)
  run:fact("nccl_source_commit", environment.source_commit(opt.nccl_source))
  run:world(("world%d_full"):format(opt.ranks), opt.ranks,
    { async, decomposition, fragmentation, decode, numerics })
  if opt.ranks ~= 2 then run:world("world2_decode", 2, { decode }) end
  for _, ranks in ipairs(opt.ranks == 2 and { 2 } or { 2, opt.ranks }) do
    nccl_tests.control(run, ("nccl_tests_g%d"):format(ranks), ranks, control)
  end
end

interview.remarks = {
  { "dtype", "FP32 for async/decomposition; FP16 for fragmentation/decode/control; "
    .. "both for numerics" },
}

interview.boundary = {
  "Decode replay contains communication only; it excludes GEMM, scheduling and custom "
    .. "AllReduce kernels, and, but for rows with mode=graph, CUDA graphs.",
  "FP16 counterexamples prove that callers cannot assume implicit FP32 accumulation; they "
    .. "do not specify any GPU architecture's internal instruction sequence.",
  "Exact performance percentages are valid only for the recorded hardware, software and "
    .. "message matrix.",
}

interview:main()
