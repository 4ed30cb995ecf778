--- The protocol sweep: AllReduce of every size, made in every algorithm and protocol.
---
--- Each is forced call by call through nclua's tuner plugin, in one communicator, in a
--- random order that is drawn anew every cycle, together with the library's own choice
--- (auto). winners.csv says what is fastest where, and whether that is more than chance.
--- Tables and raw rows go to ROOT/logs/ch14_protocol/RUN_ID/.
local capture = require("nclua.capture")
local chapter = require("nclua.chapter")
local critical_path = require("nclua.critical_path")
local report = require("nclua.report")
local sweep = require("nclua.sweep")
local sweep_worlds = require("nclua.sweep.worlds")
local winners = require("nclua.winners")

local forced = sweep.section("sweep", {
  raw_file = "raw_measurements.csv",
  raw_columns = sweep.KEYS .. " cycle rank steering outcome time_us",
  summary_file = "summary.csv",
})

local chosen = capture.section("selection")

-- By size, and what was forced to fewer channels before what was not: who looks a cell up
-- by size, algorithm and protocol alone finds NCCL's own number of channels last.
function forced.prepare(rows)
  local fields = { "size_bytes", "algorithm", "protocol" }
  table.sort(rows, function(a, b)
    for _, field in ipairs(fields) do
      if a[field] ~= b[field] then return a[field] < b[field] end
    end
    if a.channels ~= b.channels then return a.channels > b.channels end
    if a.cycle ~= b.cycle then return a.cycle < b.cycle end
    return a.rank < b.rank
  end)
  return rows
end

local OPTIONS = {
  { "alone", false, "a world for each combination (NCCL_ALGO, NCCL_PROTO), no plugin" },
}
table.move(sweep.OPTIONS, 1, #sweep.OPTIONS, #OPTIONS + 1, OPTIONS)

local protocol = chapter.new({
  name = "protocol",
  experiment = "ch14_protocol",
  title = "Every algorithm and protocol, forced",
  sections = { forced, chosen },
  options = OPTIONS,
  defaults = { cycles = 5, warmups = 1 },
  largest = sweep.LARGEST,
  debug = sweep.DEBUG,
  summary_file = "statistics.csv",
})

function protocol.measure(run, opt)
  local env, ranks = sweep_worlds.environment(run), sweep.ranks(opt)
  sweep_worlds.measure(run, forced, { name = "sweep", ranks = ranks, env = env })
  capture.measure(run, chosen, { name = "selection", ranks = ranks, env = env })
end

local function mean_regret(rows)
  local regrets = {}
  for _, row in ipairs(rows) do regrets[#regrets + 1] = row.auto_regret_percent end
  return #regrets > 0 and critical_path.statistic(regrets) or nil
end

function protocol.conclude(run, opt)
  local rows = run:rows("sweep")
  if #rows == 0 then return end
  local choices = capture.choices(capture.read(run.folder, "selection"),
    run:rows("selection"))
  local result = winners.of(rows, choices, opt)
  run:write_table("winners.csv", winners.COLUMNS, result.rows)
  run:part("Who wins where", "```\n" .. winners.map(result) .. "\n```\n\n"
    .. report.table(winners.REPORT, winners.report_rows(result)))
  local regret = mean_regret(result.rows)
  if not regret then return end
  run:part("Regret", ("What the library's own choice takes longer than the fastest: median "
    .. "%.2f %%, at most %.2f %%."):format(regret.median, regret.max))
end

protocol.remarks = {
  { "collective", "AllReduce" },
  { "dtype", "FP32" },
  { "op", "sum" },
}

protocol.boundary = {
  "The fastest of many is chosen by these very samples: its lead over auto is a little "
    .. "flattered. `nclua tune` measures again before it believes one.",
  "A difference counts where the whole interval of the median ratio of samples of the same "
    .. "cycle lies on one side of 1; with fewer than 5 cycles none does.",
  "Calls back to back on one stream with nothing beside them; AllReduce of fp32 only.",
}

protocol:main()
