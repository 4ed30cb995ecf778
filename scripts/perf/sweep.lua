--- The run's worlds of ranks: the witness's, the table's and the pairs', one after another.
local journal = require("perf.journal")
local pairs_section = require("perf.pairs")
local ranks = require("nclua.ranks")
local witness = require("perf.witness")
local worker = require("perf.worker")

local sweep = {}

local function affinity(opt)
  if opt.cpu_affinity == "auto" then return nil end
  return table.move(opt.cpu_affinity, 1, opt.ranks, 1, {})
end

-- What ranks print is kept: the standard output is the table's.
local function world(run, opt, name, options)
  local output = {}
  options.n, options.timeout_s, options.affinity = opt.ranks, opt.timeout, affinity(opt)
  options.oversubscribe = opt.oversubscribe
  options.on_line = function(rank, line)
    output[#output + 1] = ("rank %d: %s\n"):format(rank, line)
  end
  local ok, report, message = pcall(ranks.run, options)
  if #output > 0 then run:write(("raw/%s.stdout"):format(name), table.concat(output)) end
  return ok, report, message
end

local function is_interruption(message)
  return tostring(message):find("interrupted$") ~= nil
end

---What ran and what was expected, if the table shows it. All processes of a launcher must
---come here equally often.
---@param run run
---@param opt table
---@param list perf.case[]
---@return perf.witness?
function sweep.look(run, opt, list)
  if opt.layout ~= "full" or opt.witness == "none" or opt.nccl_tests ~= "" then return end
  if opt.resume == "" then witness.measure(run, opt, list) end
  local device = (run:known("device.0") or ""):match("^[^,]*")
  return run.is_leader and witness.read(run.folder, opt.ranks, device) or nil
end

---Measures cases. Interrupted, it ends early with what there is; any other failure raises.
---@param run run
---@param opt table
---@param list perf.case[]
---@param collect perf.collector
---@return number wall_s
function sweep.measure(run, opt, list, collect)
  run:command(("%d forked ranks of: %s"):format(opt.ranks, run.command_line))
  local ok, report, message = world(run, opt, "perf", { on_row = collect:receiver(list),
    fn = function(rank) worker.run(rank, list, opt) end })
  if ok and report then return (report.wall_us or 0) / 1e6 end
  if ok then error("perf failed: " .. message, 0) end
  if not is_interruption(report) then error(report, 0) end
  run.interrupted = ("interrupted after %d of %d sizes; go on with: nclua perf --resume %s")
    :format(collect.shown, collect.total, run.folder)
  run:note(run.interrupted)
  return 0
end

---@param run run
---@param opt table
---@return table<integer, table<string, table[]>> rows by rank and section
---@return number wall_s
function sweep.pairs(run, opt)
  local rows = {}
  for rank = 0, opt.ranks - 1 do rows[rank] = {} end
  local ok, report, message = world(run, opt, "pairs", {
    on_row = function(rank, section, row)
      rows[rank][section] = rows[rank][section] or {}
      table.insert(rows[rank][section], row)
    end,
    fn = function(rank) pairs_section.run_rank(rank, opt) end,
  })
  if not ok then error(report, 0) end
  if not report then error("pairs failed: " .. message, 0) end
  return rows, (report.wall_us or 0) / 1e6
end

---The arguments of a run: those given, or those of the run to be resumed.
---@param given string[]
---@return string[]? args
---@return string? message
function sweep.arguments(given)
  if given[1] ~= "--resume" then return given end
  local folder = tostring(given[2]):gsub("/+$", "")
  if #given ~= 2 then return nil, "--resume takes a run's directory and no other option" end
  local content, message = journal.read(folder)
  if not content then return nil, message end
  local args = table.move(content.arguments, 1, #content.arguments, 1, {})
  args[#args + 1], args[#args + 2] = "--resume", folder
  args[#args + 1], args[#args + 2] = "--run-id", folder:match("[^/]*$")
  return args
end

---What the journal keeps of them.
---@param args string[]
---@return string[]
function sweep.remembered(args)
  local kept, skips = {}, false
  for _, word in ipairs(args) do
    local is_id = word == "--run-id"
    local is_other = not skips and not is_id and not word:find("^%-%-run%-id=")
    if is_other then kept[#kept + 1] = word end
    skips = is_id
  end
  return kept
end

return sweep
