--- The options: nccl-tests' letters and long names, and what it does not have.
local collectives = require("perf.collectives")
local cuda = require("nclua.cuda")
local environment = require("nclua.environment")
local types = require("perf.types")

local options = {}

---@type options.row[]
options.ROWS = {
  { "collective", "all_reduce", "what to measure, comma-separated; all", kind = "list",
    choices = { "all", table.unpack(collectives.NAMES) } },
  { "ranks", "auto", "ranks; auto: one a device, no more than there are CPUs",
    alias = "-g --ngpus", kind = "integer", min = 1 },
  { "threads", 1, "as in nccl-tests: multiplies the ranks, which are processes here",
    alias = "-t --nthreads", min = 1 },
  { "minbytes", "32M", "first size", kind = "size", alias = "-b" },
  { "maxbytes", "32M", "last size", kind = "size", alias = "-e" },
  { "stepbytes", "1M", "from size to size, without -f", kind = "size", alias = "-i" },
  { "stepfactor", 1, "from size to size, if more than 1", alias = "-f", min = 1 },
  { "iters", 20, "iterations that are timed", alias = "-n", min = 1 },
  { "warmups", 1, "iterations before them", alias = "-w --warmup_iters", min = 0 },
  { "agg_iters", 1, "operations in one NCCL group", alias = "-m --agg_iters", min = 1 },
  { "cycles", 1, "how often the sizes are gone through", alias = "-N --run_cycles",
    min = 1 },
  { "check", 1, "operations whose data is checked; 0: none", alias = "-c", min = 0 },
  { "op", "sum", "sum, prod, max, min, avg, mulsum, all; comma-separated", kind = "list",
    alias = "-o", choices = { "sum", "prod", "max", "min", "avg", "mulsum", "all" } },
  { "datatype", "float", "int8, uint8, int32, uint32, int64, uint64, half, float, double, "
    .. "bfloat16, f8e4m3, f8e5m2, all; comma-separated", kind = "list", alias = "-d" },
  { "root_rank", "0", "-1 or all: each in turn; --root is something else here",
    alias = "-r" },
  { "blocking", 0, "1: wait and meet after each iteration, 2: wait, 3: wait, and meet "
    .. "outside of the time", alias = "-z", min = 0 },
  { "average", 1, "one time of the ranks': 0 rank 0's, 1 mean, 2 min, 3 max",
    alias = "-a", min = 0 },
  { "cudagraph", 0, "the iterations as one CUDA graph, launched so often", alias = "-G",
    min = 0 },
  { "local_register", 0, "1: register the buffers, 2: as symmetric windows",
    alias = "-R --local_register", min = 0 },
  { "cta_policy", -1, "of the communicator: 0, 1 or 2", alias = "-x --cta_policy",
    min = -1 },
  { "report_cputime", 0, "1: the time column is the time in the calls",
    alias = "-C --report_cputime", min = 0 },
  { "report_timestamps", 0, "1: nccl-tests' layout has date and time",
    alias = "-S --report_timestamps", min = 0 },
  { "per_iter_timing", 0, "1: nccl-tests' layout has statistics of iterations",
    alias = "-I --per_iter_timing", min = 0 },
  { "unalign", 0, "elements by which the buffers are shifted", alias = "-u", min = 0 },
  { "parallel_init", 0, "accepted; ranks always start at once",
    alias = "-p --parallel_init", min = 0 },
  { "timeout", 60, "seconds without progress that end the run; 0: never", alias = "-T",
    min = 0 },
  { "layout", "full", "full, or nccl-tests for its exact text",
    choices = { "full", "nccl-tests" } },
  { "passes", 1, "how often each row is timed", min = 1 },
  { "stable", 0.0, "time each row until its median is known within so many percent",
    min = 0 },
  { "max_passes", 100, "with --stable, no more than this", min = 5 },
  { "max_seconds", 10.0, "with --stable, a row takes no longer than this", min = 0 },
  { "hold", "auto", "microseconds that a waiting kernel holds the stream while what the "
    .. "device's clock times is queued; 0: none", kind = "integer", min = 0 },
  { "witness", "auto", "none: do not find out what ran",
    choices = { "auto", "none" } },
  { "pairs", false, "measure every pair of ranks: latency at -b, bandwidth at -e" },
  { "csv", "", "also write the table to this file, row by row" },
  { "json", "", "also write it as JSON, one object a line", alias = "-J --output_file" },
  { "against", "", "runs (directories) whose best times count for the regret",
    kind = "list" },
  { "nccl_tests", "", "nccl-tests' program, or its folder: it measures instead" },
  { "resume", "", "go on with an interrupted run: its directory, and no other option" },
}

local function expand(names, all)
  local list, seen = {}, {}
  for _, name in ipairs(names) do
    for _, each in ipairs(name == "all" and all or { name }) do
      if not seen[each] then list[#list + 1], seen[each] = each, true end
    end
  end
  return list
end

local OPERATORS = { "sum", "prod", "max", "min", "avg", "mulsum" }

local function wrong(text, ...)
  error(text:format(...), 0)
end

local function find_types(names)
  local all, list = {}, {}
  for i, type in ipairs(types.ALL) do all[i] = type.name end
  for i, name in ipairs(expand(names, all)) do
    list[i] = types.find(name) or wrong("--datatype: unknown '%s': expected %s", name,
      table.concat(all, ", "))
  end
  return list
end

local function roots(text, ranks)
  local root = text == "all" and -1 or math.tointeger(tonumber(text))
  if not root or root < -1 or root >= ranks then
    wrong("--root-rank: expected 0 to %d, or all, got '%s'", ranks - 1, text)
  end
  if root >= 0 then return { root } end
  local list = {}
  for rank = 0, ranks - 1 do list[rank + 1] = rank end
  return list
end

local function check_together(opt)
  if opt.minbytes > opt.maxbytes then
    wrong("-b %d is more than -e %d", opt.minbytes, opt.maxbytes)
  elseif opt.stepfactor == 1 and opt.stepbytes == 0 and opt.minbytes < opt.maxbytes then
    wrong("-i 0 never gets from -b to -e; -N repeats a size")
  elseif opt.stepfactor > 1 and opt.minbytes == 0 then
    wrong("-b 0 with -f never gets larger; use -b 1")
  elseif opt.cudagraph > 0 and opt.blocking > 0 then
    wrong("-z waits after each iteration, which a graph (-G) cannot")
  elseif opt.blocking > 3 or opt.average > 3 or opt.local_register > 2
    or opt.cta_policy > 2 then
    wrong("-z and -a go up to 3, -R and -x up to 2")
  end
end

---How many ranks there are in the end, which may be fewer than were asked for.
---@param opt table
---@param ranks integer
function options.settle(opt, ranks)
  opt.ranks, opt.roots = ranks, roots(opt.root_rank, ranks)
end

local LIMIT_S <const> = 1000000000

---What the options mean, once the backend is known.
---@param opt table completed in place
---@return table opt
function options.resolve(opt)
  check_together(opt)
  if opt.ranks == "auto" then
    opt.ranks = math.max(1, math.min(cuda.device_count(), #environment.cpus()))
  end
  opt.ranks = opt.ranks * opt.threads
  if opt.cpu_affinity ~= "auto" and #opt.cpu_affinity < opt.ranks then
    wrong("--cpu-affinity: %d CPUs for %d ranks", #opt.cpu_affinity, opt.ranks)
  end
  opt.collectives = expand(opt.collective, collectives.NAMES)
  opt.ops, opt.types = expand(opt.op, OPERATORS), find_types(opt.datatype)
  options.settle(opt, opt.ranks)
  if opt.timeout == 0 then opt.timeout = LIMIT_S end
  opt.most_passes = opt.stable > 0 and opt.max_passes or opt.passes
  opt.largest_bytes = opt.maxbytes
  opt.wants_device_time = opt.layout == "full" or opt.per_iter_timing > 0
  return opt
end

return options
