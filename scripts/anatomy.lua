--- The anatomy of one collective: every step of every rank, drawn, and counted against the
--- textbook.
---
--- Runs it on the CPU backend as NCCL would run it on GPUs, and writes what each rank sent,
--- received and reduced, which chunk, and when: as text here, with --svg FILE as a picture
--- too. --delay shows what a straggler does to the others.
local anatomy = require("nclua.anatomy")
local command = require("nclua.command")
local cuda = require("nclua.cuda")
local files = require("nclua.files")
local options = require("nclua.options")
local ranks = require("nclua.ranks")
local size = require("nclua.size")
local source = require("nclua.source")
local svg = require("nclua.anatomy.svg")
local text = require("nclua.anatomy.text")
local textbook = require("nclua.anatomy.textbook")

local OPTIONS = {
  { "ranks", 4, "how many", min = 2 },
  { "collective", "all_reduce", "which",
    choices = { "all_reduce", "all_gather", "reduce_scatter", "broadcast", "reduce" } },
  { "algorithm", "auto", "ring, tree, pat", choices = { "auto", "ring", "tree", "pat" } },
  { "protocol", "auto", "LL, LL128, Simple",
    choices = { "auto", "LL", "LL128", "Simple" } },
  { "bytes", "4K", "the message; where each rank has a block, all of them", kind = "size" },
  { "channels", 1, "small messages use fewer", min = 1 },
  { "cycles", 20, "the quickest of so many is shown", min = 1 },
  { "delay", "", "rank:step:us[:channel];... these steps come late; * is any" },
  { "svg", "", "write the picture to this file" },
}

local FP32 = 4 -- bytes

local CALLS = {
  all_reduce = function(comm, p) comm:all_reduce(p.all, p.result, "sum", p.stream) end,
  all_gather = function(comm, p) comm:all_gather(p.block, p.result, p.stream) end,
  reduce_scatter = function(comm, p)
    comm:reduce_scatter(p.all, p.result_block, "sum", p.stream)
  end,
  broadcast = function(comm, p) comm:broadcast(p.all, p.result, 0, p.stream) end,
  reduce = function(comm, p) comm:reduce(p.all, p.result, "sum", 0, p.stream) end,
}

local function environment(opt)
  local function asked(word) return word ~= "auto" and word or false end
  return {
    NCCL_ALGO = asked(opt.algorithm), NCCL_PROTO = asked(opt.protocol),
    NCCL_MIN_NCHANNELS = opt.channels, NCCL_MAX_NCHANNELS = opt.channels,
    NCLUA_CPU_DELAY = opt.delay,
  }
end

local function difference(after, before)
  local result = {}
  for key, value in pairs(after) do result[key] = value - before[key] end
  return result
end

local function measure(rank, opt)
  local cpu = require("nclua.cpu")
  local comm <close> = rank:comm()
  local stream <close> = assert(cuda.stream())
  local block = opt.bytes // FP32 // rank.count
  local all <close> = assert(cuda.buffer("f32", opt.bytes // FP32)):fill(1)
  local result <close> = assert(cuda.buffer("f32", opt.bytes // FP32)):fill(0)
  local places = { all = all, result = result, stream = stream,
    block = all:slice(1, math.max(block, 1)),
    result_block = result:slice(1, math.max(block, 1)) }
  local call = CALLS[opt.collective]
  for cycle = 0, opt.cycles do
    rank:barrier(stream)
    local before = cpu.counters(comm)
    local steps = assert(cpu.trace(function()
      call(comm, places)
      stream:sync()
    end))
    local counters = difference(cpu.counters(comm), before)
    if cycle > 0 then rank:emit("call", { steps = steps, counters = counters }) end
  end
end

-- Each call's steps, of all ranks, and each rank's counters.
local function record(opt)
  local calls = {}
  assert(ranks.run({
    n = opt.ranks, env = environment(opt), oversubscribe = true,
    fn = function(rank) measure(rank, opt) end,
    on_row = function(rank, _, row)
      for _, step in ipairs(row.steps) do
        local call = calls[step.call] or { steps = {}, counters = {} }
        calls[step.call] = call
        table.insert(call.steps, step)
        call.counters[rank] = row.counters
      end
    end,
  }))
  return calls
end

-- What else ran on this machine shows least in the quickest call.
local function quickest(opt)
  local best, counters
  for _, call in pairs(record(opt)) do
    local model = anatomy.of(call.steps, opt)
    local ns = model.end_ns - model.begin_ns
    if not best or ns < best.end_ns - best.begin_ns then
      best, counters = model, call.counters
    end
  end
  return best, counters
end

local function print_counts(counts)
  print("rank steps slots bytes sent with flags   received    reduced waited us delayed")
  for _, c in ipairs(counts) do
    print(("%4d %5d %5d %10d %10d %10d %10d %9.1f %7.1f"):format(c.rank, c.steps,
      c.counters.slots_sent, c.bytes_sent, c.counters.wire_sent, c.bytes_received,
      c.bytes_reduced, c.wait_us, c.delay_us))
  end
end

local function print_findings(findings)
  local all_ok = true
  for _, f in ipairs(findings) do
    local verdict = f.ok and "OK" or "DIFFERS"
    print(("%-7s %s: %.10g, textbook %.10g"):format(verdict, f.what, f.found, f.expected))
    all_ok = all_ok and f.ok
  end
  return all_ok
end

local function show(model, counters, opt)
  local title = ("%s of %s, %d ranks: %s, %s"):format(opt.collective,
    size.format(opt.bytes), opt.ranks, model.algorithm, model.protocol)
  print(title .. "; backend=cpu")
  print(text.LEGEND .. "\n")
  print(text.grid(model) .. "\n")
  print(text.timeline(model) .. "\n")
  local counts = textbook.count(model, counters)
  print_counts(counts)
  if opt.svg ~= "" then
    assert(files.write(opt.svg, svg.encode(model, title .. " (nclua, CPU backend)")))
  end
  return print_findings(textbook.check(model, counts))
end

local function fail(message)
  io.stderr:write("nclua anatomy: ", message, "\n")
  os.exit(1)
end

local description = options.header(source.of(1).text)
local opt = command.options("nclua anatomy", description, OPTIONS, arg)
if cuda.backend() ~= "cpu" then
  fail("the steps inside a collective can be seen on the CPU backend only: "
    .. "nclua --backend cpu anatomy ...")
end
local has_blocks = opt.collective == "all_gather" or opt.collective == "reduce_scatter"
local unit = FP32 * (has_blocks and opt.ranks or 1)
opt.bytes = opt.bytes // unit * unit
if opt.bytes == 0 then fail("--bytes: less than one element") end
local model, counters = quickest(opt)
if not model then fail("no step was recorded") end
local is_as_asked = (opt.algorithm == "auto" or opt.algorithm == model.algorithm:lower())
  and (opt.protocol == "auto" or opt.protocol == model.protocol)
local is_textbook = show(model, counters, opt)
if not is_as_asked then fail("not the algorithm and protocol that were asked for") end
if not is_textbook then fail("the counts are not the textbook's") end
