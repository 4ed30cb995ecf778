--- Measures collectives as nccl-tests does: its options, its definition of time, its sizes
--- and bandwidths, and with --layout nccl-tests its exact text.
---
--- Beyond that, every row says what ran (algorithm, protocol, channels) and how that is
--- known, beside three clocks: the host's time in the calls, the device's between events,
--- and the wall's until completion was observed; and NCCL's own prediction. Raw rows,
--- iterations, tables and results.db go to ROOT/logs/perf/RUN_ID/. Ctrl-C keeps what there
--- is, and --resume RUN_DIR goes on from there.
local chapter = require("nclua.chapter")
local cuda = require("nclua.cuda")
local inventory = require("nclua.inventory")
local worlds = require("nclua.worlds")

local cases = require("perf.cases")
local collector = require("perf.collector")
local external = require("perf.external")
local findings = require("perf.findings")
local journal = require("perf.journal")
local layout_full = require("perf.layout_full")
local layout_nccl_tests = require("perf.layout_nccl_tests")
local options = require("perf.options")
local pairs_section = require("perf.pairs")
local sections = require("perf.sections")
local sweep = require("perf.sweep")

local LAYOUTS = { full = layout_full, ["nccl-tests"] = layout_nccl_tests }

local perf = chapter.new({
  name = "perf",
  experiment = "perf",
  title = "Collectives as nccl-tests measures them",
  sections = { sections.perf, sections.iterations, pairs_section },
  options = options.ROWS,
  without = { "largest", "sections" },
  summary_file = "statistics.csv",
  debug = {}, -- NCCL's log costs time: only the witness has one
})

local args, refusal = sweep.arguments(arg)

function perf.check(opt)
  local ok, message = pcall(options.resolve, opt)
  return not ok and message or nil
end

local function keep(run, opt, name, rows, wall_s)
  if not run.is_leader then return end
  worlds.keep(run, { name = name, requested_world_size = opt.requested_ranks,
    world_size = opt.ranks, wall_s = wall_s }, rows)
end

local function new_collector(run, opt, list)
  run.perf_context = { ranks = opt.ranks, average = opt.average,
    times_valid = opt.ranks <= cuda.device_count(),
    witness = sweep.look(run, opt, list) }
  local function write(text)
    if run.is_leader then io.write(text) end
  end
  return collector.new({ run = run, opt = opt, context = run.perf_context, total = #list,
    layout = LAYOUTS[opt.layout].new(opt, write), sinks = collector.sinks(run, opt) })
end

local function by_ourselves(run, opt, list, collect)
  local content = opt.resume ~= "" and assert(journal.read(run.folder)) or nil
  local left = content and collect:restore(list, content) or list
  if run.is_leader then
    collect.journal = content and journal.continue(run.folder, content)
      or journal.create(run.folder, sweep.remembered(args))
  end
  return sweep.measure(run, opt, left, collect)
end

function perf.measure(run, opt)
  opt.requested_ranks = opt.ranks
  options.settle(opt, worlds.shrink(run, "perf", opt.ranks))
  local list, impossible = cases.all(opt)
  local wall_s = 0
  for _, name in ipairs(impossible) do
    run:note(("%s: %d ranks are not a power of 2, skipping"):format(name, opt.ranks))
  end
  for _, note in ipairs(run.is_leader and run.notes or {}) do
    io.write("# nclua: ", note, "\n")
  end
  if #list == 0 then error("nothing is left to measure", 0) end
  local collect = new_collector(run, opt, list)
  if opt.nccl_tests == "" then
    wall_s = by_ourselves(run, opt, list, collect)
  else
    external.measure(run, opt, collect)
  end
  collect:finish()
  keep(run, opt, "perf", collect.kept, wall_s)
  if opt.pairs and not run.interrupted then
    keep(run, opt, "pairs", sweep.pairs(run, opt))
  end
end

function perf.conclude(run, opt)
  findings.conclude(run, opt)
  local rows = run.tables.pairs
  if not rows then return end
  local text = pairs_section.matrices(rows, opt.ranks)
  run:part("Pairs of ranks", text)
  if opt.layout == "full" then io.write("\n", text, "\n") end
end

function perf.report(run)
  io.stdout:flush()
  io.stderr:write(("nclua %s: run_dir=%s\n"):format(inventory.version(), run.folder))
end

if not args then
  io.stderr:write("perf: ", refusal, "\n")
  os.exit(2)
end
perf:main(args)
