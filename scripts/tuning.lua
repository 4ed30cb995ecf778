--- How NCCL chooses, and how to choose for it.
---
--- Times of the library's own choice at every size, twice; its model table, costs and
--- selections, computed again and compared; what the model misses, against a forced sweep;
--- and the proof that a tuner plugin's override takes effect, by witnesses that could say
--- no. Tables and raw rows go to ROOT/logs/ch16_tuning/RUN_ID/.
local capture = require("nclua.capture")
local chapter = require("nclua.chapter")
local combination = require("nclua.combination")
local measure = require("nclua.measure")
local report = require("nclua.report")
local sweep = require("nclua.sweep")
local sweep_worlds = require("nclua.sweep.worlds")

local comparison = require("tuning.comparison")
local geometry = require("tuning.geometry")
local model = require("tuning.model")
local performance = require("tuning.performance")
local proof = require("tuning.proof")

local forced = sweep.section("sweep")
local selection = capture.section("selection")
local witness = capture.section("witness")

local REPLICATES = 2

local OPTIONS = {
  { "plugin_cycles", 10, "cycles of the override's times", min = 1 },
  { "skip_nsys", false, "no profile by nsys; nclua's own tracer is used" },
  { "sweep", "", "directory of a protocol run to compare with, instead of an own sweep" },
  { "sweep_cycles", 5, "cycles of the own sweep", min = 1 },
  { "override", "Tree/Simple/2", "what the plugin shall force" },
  { "override_bytes", "auto", "message of the proof; auto: 64M, or the largest",
    kind = "size", min = 4 },
  { "override_from", "0", "smallest message that the plugin forces", kind = "size" },
  { "override_to", "1024G", "largest message that the plugin forces", kind = "size" },
}
table.move(sweep.OPTIONS, 1, #sweep.OPTIONS, #OPTIONS + 1, OPTIONS)

local tuning = chapter.new({
  name = "tuning",
  experiment = "ch16_tuning",
  title = "NCCL's model, its choices, and a plugin's",
  sections = { performance.auto, selection, forced, proof.timed, witness },
  options = OPTIONS,
  defaults = { cycles = 5, warmups = 1 },
  largest = sweep.LARGEST,
  debug = { NCCL_DEBUG = "WARN", NCCL_DEBUG_SUBSYS = "INIT,ENV,GRAPH" },
  summary_rule = "max rank duration per cycle, then median/P95 (linear)/CV over cycles",
})

local function read_options(opt)
  opt.override = assert(combination.parse(opt.override))
  if opt.override_bytes == "auto" then
    opt.override_bytes = math.min(64 << 20, opt.largest)
  end
end

function tuning.measure(run, opt)
  sweep_worlds.must_fork("tuning")
  read_options(opt)
  local env, ranks = sweep_worlds.environment(run), sweep.ranks(opt)
  for replicate = 1, REPLICATES do
    run:world("auto_r" .. replicate, ranks, { performance.auto },
      { env = env, values = { replicate = replicate } })
  end
  capture.measure(run, selection, { name = "selection", ranks = ranks, env = env })
  if opt.sweep == "" then
    sweep_worlds.measure(run, forced, { name = "sweep", ranks = ranks, env = env,
      values = { cycles = opt.sweep_cycles } })
  end
  proof.measure(run, witness, { ranks = ranks, env = env })
end

-- Exactly so many rows as were asked for: a size or cycle that is missing would not show.
local function check_counts(run, opt)
  local rows = #run:rows("auto")
  if rows == 0 then return end
  local ranks = run:rows("auto")[1].world_size
  local sizes = #measure.sizes(opt.smallest, opt.largest, 2)
  local wanted = sizes * opt.cycles * REPLICATES * ranks
  if rows ~= wanted then
    run:fail(("auto performance has %d rows, not %d"):format(rows, wanted))
  end
end

local function facts_of(run)
  local device = run:known("device.0") or ""
  local major, minor = device:match("compute capability (%d+)%.(%d+)")
  return { backend = run.backend, device = device, nodes = 1,
    ranks = run:rows("selection")[1].world_size,
    capability = major and math.tointeger(major) * 10 + math.tointeger(minor) }
end

-- Cells that there are; a table of zeros says little.
local function available(rows)
  local list = {}
  for _, row in ipairs(rows) do
    if row.available == 1 then list[#list + 1] = row end
  end
  return list
end

local function say_model(run, rows, checked)
  local items = {
    ("All %d selections follow from the printed table%s."):format(checked.sizes,
      checked.ties > 0 and (" (%d within its rounding)"):format(checked.ties) or ""),
    ("The exact costs that the tuner was handed agree with it at %d sizes."):format(
      checked.exact),
    run.backend == "cpu" and "The CPU backend's table comes from its own constants." or
      ("The exact costs follow from the log's graph lines alone at %d sizes."):format(
        checked.graph),
  }
  table.move(checked.notes, 1, #checked.notes, #items + 1, items)
  run:part("Model table", report.table({
    { "algorithm", "algorithm" }, { "protocol", "protocol" },
    { "latency us", "base_latency_us", "%.1f" },
    { "algorithm BW GB/s", "algorithm_bandwidth_GBs", "%.1f" },
  }, available(rows)) .. "\n\n" .. report.list(items))
end

local function conclude_model(run, opt)
  local result = capture.read(run.folder, "selection")
  local rows, message = model.table(result)
  if not rows then error(message, 0) end
  run:write_table("model_table.csv", model.TABLE_COLUMNS, rows)
  local choices = capture.choices(result, run:rows("selection"))
  local sizes = measure.sizes(opt.smallest, opt.largest, 2)
  local candidates, checked = model.recompute(result, choices, sizes, facts_of(run))
  run:write_table("model_candidates.csv", model.CANDIDATE_COLUMNS, candidates)
  say_model(run, rows, checked)
  return candidates
end

local function conclude_comparison(run, opt, candidates)
  local table_of_sweep = opt.sweep ~= "" and comparison.read(opt.sweep)
    or run.tables.sweep or {}
  local rows, missing = comparison.of(candidates, table_of_sweep)
  if #rows == 0 then error("the sweep has no size in common with the model", 0) end
  run:write_table("selection_vs_measured.csv", comparison.COLUMNS, rows)
  local totals = comparison.totals(rows)
  local worst = totals.worst
  run:part("Auto-selection regret", report.list({
    ("Exact hits against the forced sweep: %d/%d"):format(totals.exact, totals.sizes),
    ("Practical hits (regret < %d%%): %d/%d"):format(comparison.TIE_PERCENT,
      totals.practical, totals.sizes),
    ("Worst regret: %d B, %.2f%%"):format(worst.size_bytes,
      worst.selection_regret_percent),
    ("Sizes that the sweep does not have: %d"):format(#missing),
  }) .. "\n\n" .. report.table(comparison.REPORT, rows))
end

local function conclude_proof(run)
  if #run:rows("witness") == 0 then return end
  local profile, why = nil, run:known("profile")
  if run.profile_tool then profile, why = geometry.write(run, run.profile_tool) end
  local verdict = proof.judge(run, profile and profile.grids)
  run:write_table("plugin_witnesses.csv", proof.WITNESS_COLUMNS, verdict.witnesses)
  run:part("Did the override take effect?", proof.describe(run, verdict, profile, why))
  if not verdict.took_effect then run:fail("the override was " .. verdict.text) end
end

-- What one part cannot show must not hide what the others can.
local function attempt(run, what, fn, ...)
  local ok, result = pcall(fn, run, ...)
  if ok then return result end
  run:fail(what .. ": " .. tostring(result))
end

function tuning.conclude(run, opt)
  check_counts(run, opt)
  if run:is_selected(selection) then
    local candidates = attempt(run, "the model", conclude_model, opt)
    local has_sweep = opt.sweep ~= "" or run.tables.sweep
    if candidates and has_sweep then
      attempt(run, "the comparison", conclude_comparison, opt, candidates)
    end
  end
  attempt(run, "the override", conclude_proof)
end

tuning.remarks = {
  { "collective", "AllReduce" },
  { "dtype", "FP32" },
  { "auto_replicates", REPLICATES },
}

tuning.boundary = {
  "Recomputation shows that the model was understood, not that its times are right: how "
    .. "far they are off is in the table of regret.",
  "Regret compares forced cells of one sweep; where intervals overlap it is noise "
    .. "(sweep_summary.csv has them).",
  "The override is proved for one size and communicator; a plugin sees others, too.",
}

tuning:main()
