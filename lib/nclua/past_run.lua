--- A run that is done, as its results.db has it: for lists, comparisons and reports.
local past_run = {}

local files = require("nclua.files")
local lfs = require("lfs")
local results = require("nclua.results")
local sqlite = require("nclua.sqlite")

---@class past_run.case what one section measured of one case in one world
---@field section string
---@field world_size integer
---@field case string
---@field metric string
---@field samples number[] the slowest rank of each cycle, in the cycles' order
---@field all_correct boolean
---@field times_valid boolean

---@class past_run
---@field folder string
---@field run table<string, any> the row of table `run`
---@field facts { [1]: string, [2]: string }[]
---@field options { [1]: string, [2]: string }[]
---@field notes string[]
---@field commands string[]
---@field worlds table[]
---@field contracts { total: integer, failed: integer }
---@field cases past_run.case[] in the order in which they were measured

local DEEPEST = 4 -- ROOT/logs/EXPERIMENT/RUN_ID/results.db

local function find(folder, depth, found)
  local names = {}
  for name in lfs.dir(folder) do names[#names + 1] = name end
  table.sort(names)
  for _, name in ipairs(names) do
    local path = folder .. "/" .. name
    if name == results.FILE then
      found[#found + 1] = folder
    elseif depth < DEEPEST - 1 and name:sub(1, 1) ~= "."
      and lfs.symlinkattributes(path, "mode") == "directory" then
      find(path, depth + 1, found)
    end
  end
  return found
end

---The folders with a results.db below a root.
---@param root string
---@return string[]? folders
---@return string? message
---@return string? code
function past_run.find(root)
  if lfs.attributes(root, "mode") ~= "directory" then
    return nil, root .. ": not a folder", "ENOTDIR"
  end
  local ok, found = pcall(find, root, 0, {})
  if not ok then return nil, tostring(found), "EIO" end
  return found
end

local function pairs_of(db, sql)
  local list = {}
  for row in db:rows(sql) do list[#list + 1] = { row.name, row.value } end
  return list
end

local function column(db, sql)
  local list = {}
  for row in db:rows(sql) do list[#list + 1] = row.text end
  return list
end

local function all(db, sql)
  local list = {}
  for row in db:rows(sql) do list[#list + 1] = row end
  return list
end

-- A rank may measure one cycle several times: its n-th value belongs to the others' n-th.
local SLOWEST = [[
select section, world_size, case_name, metric, max(value) as slowest,
  min(correct) as correct, min(times_valid) as times_valid from (
  select *, rowid as place, row_number() over (partition by section,
    requested_world_size, world_size, case_name, metric, cycle, rank order by rowid) as nth
  from measurement
  where metric like '%\_us' escape '\' and typeof(value) in ('real', 'integer'))
group by section, requested_world_size, world_size, case_name, metric, cycle, nth
order by min(place)]]

local function cases(db)
  local list, known = {}, {}
  for row in db:rows(SLOWEST) do
    local key = table.concat({ row.section, row.world_size, row.case_name, row.metric },
      "\0")
    local case = known[key]
    if not case then
      case = { section = row.section, world_size = row.world_size, case = row.case_name,
        metric = row.metric, samples = {}, all_correct = true, times_valid = true }
      known[key], list[#list + 1] = case, case
    end
    case.samples[#case.samples + 1] = row.slowest
    case.all_correct = case.all_correct and row.correct == 1
    case.times_valid = case.times_valid and row.times_valid == 1
  end
  return list
end

local function read(db, folder)
  local contracts = db:row("select count(*) as total, coalesce(sum(correct = 0), 0)"
    .. " as failed from contract")
  return {
    folder = folder,
    run = db:row("select * from run") or error("table run is empty", 0),
    facts = pairs_of(db, "select name, value from fact order by rowid"),
    options = pairs_of(db, "select name, value from option order by rowid"),
    notes = column(db, "select text from note order by rowid"),
    commands = column(db, "select line as text from command order by rowid"),
    worlds = all(db, "select * from world order by rowid"),
    contracts = contracts,
    cases = cases(db),
  }
end

---@param path string a run's folder, or its results.db
---@return past_run? run
---@return string? message
---@return string? code
function past_run.open(path)
  local is_folder = lfs.attributes(path, "mode") == "directory"
  local file = is_folder and path .. "/" .. results.FILE or path
  if not files.exists(file) then return nil, file .. ": no such file", "ENOENT" end
  local db <close>, message, code = sqlite.open(file, { mode = "ro" })
  if not db then return nil, message, code end
  local ok, run = pcall(read, db, files.folder(file))
  if ok then return run end
  return nil, ("%s: not a run's results: %s"):format(file, run), "EINVAL"
end

---@param run past_run
---@param name string of a fact
---@return string? value
function past_run.fact(run, name)
  for _, pair in ipairs(run.facts) do
    if pair[1] == name then return pair[2] end
  end
end

---What it ran on, in a few words: "4 x NVIDIA H200".
---@param run past_run
---@return string
function past_run.hardware(run)
  local counts, order = {}, {}
  for _, pair in ipairs(run.facts) do
    local name = pair[1]:find("^device%.%d") and tostring(pair[2]):match("^[^,]*")
    if name then
      if not counts[name] then order[#order + 1] = name end
      counts[name] = (counts[name] or 0) + 1
    end
  end
  for i, name in ipairs(order) do order[i] = ("%d x %s"):format(counts[name], name) end
  return #order > 0 and table.concat(order, ", ") or "unknown"
end

---The sizes of its worlds, such as "4, 2".
---@param run past_run
---@return string
function past_run.ranks(run)
  local seen, list = {}, {}
  for _, world in ipairs(run.worlds) do
    if not seen[world.world_size] then list[#list + 1] = ("%d"):format(world.world_size) end
    seen[world.world_size] = true
  end
  return table.concat(list, ", ")
end

return past_run
