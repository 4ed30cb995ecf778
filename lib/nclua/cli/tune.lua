--- Rules for a tuner plugin that are faster than NCCL's own choices here, and the proof.
---
--- A sweep forces every algorithm and protocol beside NCCL's own choice; where one is
--- really faster, by more than the threshold, it becomes a rule. Fresh measurements then
--- compare rules and NCCL's choices, and only what they confirm goes into tuner_rules.csv.
local capture = require("nclua.capture")
local chapter = require("nclua.chapter")
local files = require("nclua.files")
local lfs = require("lfs")
local measure = require("nclua.measure")
local mix = require("nclua.tune.mix")
local plugins = require("nclua.plugins")
local proof = require("nclua.tune.proof")
local report = require("nclua.report")
local rules = require("nclua.tune.rules")
local stats = require("nclua.stats")
local sweep = require("nclua.sweep")
local sweep_worlds = require("nclua.sweep.worlds")
local winners = require("nclua.winners")

local forced = sweep.section("sweep")
local selection = capture.section("selection")
local fresh = proof.section()

local OPTIONS = {
  { "threshold", 3.0, "percent of the time that a rule must save", min = 0 },
  { "mix", "", "messages of a job as SIZE:COUNT,...: its total is reported" },
  { "proof_cycles", 10, "cycles of the proof run", min = 5 },
  { "apply", false, "print the two variables that a job needs, and nothing else" },
}
table.move(sweep.OPTIONS, 1, #sweep.OPTIONS, #OPTIONS + 1, OPTIONS)

local tune = chapter.new({
  name = "tune",
  experiment = "tune",
  title = "A tuner for this machine",
  sections = { forced, selection, fresh },
  options = OPTIONS,
  defaults = { cycles = 10, warmups = 1, confidence = 0.99 },
  largest = sweep.LARGEST,
  debug = sweep.DEBUG,
})

local function sorted_sizes(opt)
  local list, seen = {}, {}
  local function add(bytes)
    if not seen[bytes] then list[#list + 1], seen[bytes] = bytes, true end
  end
  for _, bytes in ipairs(measure.sizes(opt.smallest, opt.largest, 2)) do add(bytes) end
  for _, entry in ipairs(opt.mix) do add(entry.bytes) end
  table.sort(list)
  return list
end

local function read_options(opt)
  local entries, message = mix.parse(opt.mix)
  if not entries then error("--mix: " .. message, 0) end
  opt.mix = entries
  opt.sizes = sorted_sizes(opt)
end

local function absolute(path)
  return path:find("^/") and path or lfs.currentdir() .. "/" .. path
end

-- The plugin and its rules lie side by side: one folder to copy to a cluster.
local function keep_plugin(run)
  local path = assert(plugins.file("tuner"))
  run:write("libnccl-tuner-nclua.so", assert(files.read(path)))
end

local function write_rules(run, name, list)
  local ranks = run:rows("sweep")[1].world_size
  run:write(name, rules.encode(list, { ranks = ranks, nodes = 1 }, {
    ("nclua tune, run %s on %s"):format(run.id, run:known("hostname")),
    ("NCCL %s, %d ranks, %s"):format(run:known("nccl_version"), ranks,
      run:known("device.0")),
    "Measured with fp32 sums; bytes decide, whatever the type.",
  }))
  return absolute(run:path(name))
end

local function propose(run, opt)
  local rows = run:rows("sweep")
  local choices = capture.choices(capture.read(run.folder, "selection"),
    run:rows("selection"))
  local result = winners.of(rows, choices, opt)
  run.winners = result
  return rules.of(result, { threshold_percent = opt.threshold,
    confidence = opt.confidence, is_paired = true })
end

local NO_TUNER = "this library loads no tuner plugin (NCCL 2.21 and newer do): there is "
  .. "nothing to tune; the chapter 'protocol' measures what could be gained"

function tune.measure(run, opt)
  sweep_worlds.must_fork("tune")
  read_options(opt)
  local env, ranks = sweep_worlds.environment(run), sweep.ranks(opt)
  local world = { name = "sweep", ranks = ranks, env = env }
  sweep_worlds.measure_live(run, forced, world)
  if run:known("steering") ~= "live" then error(NO_TUNER, 0) end
  capture.measure(run, selection, { name = "selection", ranks = ranks, env = env })
  run.proposed = propose(run, opt)
  keep_plugin(run)
  if #run.proposed == 0 then return end
  local path = write_rules(run, "proposed_rules.csv", run.proposed)
  local proof_env = { NCLUA_TUNER_RULES = path }
  for name, value in pairs(env) do proof_env[name] = proof_env[name] or value end
  sweep_worlds.measure_live(run, fresh, { name = "proof", ranks = ranks, env = proof_env,
    values = { sizes = proof.sizes(opt.sizes, run.proposed), rules = run.proposed,
      cycles = opt.proof_cycles } })
end

local function total_of(run, opt, times)
  local result, auto, tuned = mix.compare(opt.mix, times.auto, times.tuned, opt)
  run:part("The mix", ("%d kinds of messages: median %.1f us with the library's own "
    .. "choices, %.1f us tuned. In the same cycle the library's own take %.3f times as "
    .. "long (%.3f to %.3f): tuned is %s."):format(#opt.mix, stats.median(auto),
    stats.median(tuned), result.ratio, result.low, result.high,
    result.verdict == "unclear" and "no different by more than chance" or result.verdict))
end

local function variables(run)
  return ("export NCCL_TUNER_PLUGIN=%s\nexport NCLUA_TUNER_RULES=%s\n"):format(
    absolute(run:path("libnccl-tuner-nclua.so")), absolute(run:path("tuner_rules.csv")))
end

local function describe(rows, kept, dropped)
  local gains = {}
  for _, row in ipairs(rows) do
    if rules.at(kept, row.size_bytes) then gains[#gains + 1] = row.time_ratio end
  end
  local items = {}
  if #gains > 0 then
    items[1] = ("%d rules hold; over their %d sizes the library's own choice takes %.3f "
      .. "times as long (geometric mean)."):format(#kept, #gains,
      stats.geometric_mean(gains))
  end
  for _, why in ipairs(dropped) do items[#items + 1] = "Not confirmed: " .. why end
  return report.list(items)
end

local function conclude_proof(run, opt)
  local times = proof.times(run:rows("proof"))
  local rows = proof.judge(times, run.proposed, opt.sizes, opt)
  run:write_table("gain.csv", proof.COLUMNS, rows)
  local kept, dropped = proof.confirmed(rows, run.proposed)
  run.kept = kept
  run:part("Gain by size, measured afresh",
    describe(rows, kept, dropped) .. "\n\n" .. report.table(proof.REPORT, rows))
  if #opt.mix > 0 then total_of(run, opt, times) end
  if #kept == 0 then return end
  write_rules(run, "tuner_rules.csv", kept)
  run:part("To use it", "```\n" .. variables(run) .. "```")
end

function tune.conclude(run, opt)
  local result = run.winners
  run:write_table("winners.csv", winners.COLUMNS, result.rows)
  run:part("Who wins where", "```\n" .. winners.map(result) .. "\n```\n\n"
    .. report.table(winners.REPORT, winners.report_rows(result)))
  if #run.proposed > 0 then return conclude_proof(run, opt) end
  run:note(("No rule: nothing is faster than the library's own choice by more than %g %% "
    .. "and more than chance."):format(opt.threshold))
end

function tune.report(run)
  if not run.opt.apply then
    local text = assert(files.read(run:path("summary.md")))
    io.write(text, "run_dir=", run.folder, "\n")
  elseif run.kept and #run.kept > 0 then
    io.write(variables(run))
  else
    io.stderr:write("tune: no rule was confirmed: nothing to set; see ", run.folder,
      "/summary.md\n")
  end
end

tune.remarks = {
  { "collective", "AllReduce" },
  { "dtype", "FP32" },
  { "op", "sum" },
}

tune.boundary = {
  "Rules hold for AllReduce on the measured number of ranks of one node; the plugin leaves "
    .. "all other communicators alone.",
  "The proof is of calls back to back; a job whose computation shares the GPU may gain "
    .. "more or less. Fewer channels leave more of the GPU to it.",
  "Between two measured sizes the nearer one decides; the proof measures one such size in "
    .. "every gap.",
}

tune:main()
