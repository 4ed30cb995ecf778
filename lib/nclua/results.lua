--- results.db: a run's rows in SQLite, so that runs can be queried, compared and reported
--- again later. Made at the end from the raw files, in one transaction, under a temporary
--- name; ranks never touch it.
local results = {}

local environment = require("nclua.environment")
local files = require("nclua.files")
local hash = require("nclua.hash")
local sqlite = require("nclua.sqlite")

results.FILE = "results.db"

-- `value` is NULL for NaN: SQLite has none. Booleans are 0 and 1.
local SCHEMA = [[
create table run (
  run_id text, experiment text, chapter text, title text, started_utc text,
  finished_utc text, nclua_version text, backend text, hostname text);
create table option (name text, value text);
create table fact (name text, value text);
create table note (text text);
create table command (line text);
create table world (
  name text, requested_world_size integer, world_size integer, wall_s real);
create table measurement (
  section text, world_size integer, case_name text, metric text, cycle integer,
  rank integer, value, correct integer, requested_world_size integer,
  times_valid integer);
create table contract (
  section text, world_size integer, case_name text, rank integer, cycle integer,
  check_name text, correct integer, requested_world_size integer);
create table summary (
  section text, world_size integer, case_name text, metric text, median real, p95 real,
  cv_percent real, samples integer, correct integer, requested_world_size integer,
  times_valid integer);
create table artifact (path text, bytes integer, sha256 text);
create index measurement_case on measurement (section, metric, case_name, world_size);
]]

-- Did all contracts of a rank's cycle hold?
local function failures(contracts)
  local failed = {}
  for _, row in ipairs(contracts) do
    local key = table.concat({ row.section, row.requested_world_size, row.case, row.rank,
      row.cycle }, "\0")
    failed[key] = failed[key] or not row.correct
  end
  return failed
end

-- One row a metric.
local function measurements(run, section, failed)
  local rows = {}
  local metrics = section:metrics()
  for _, raw in ipairs(run:rows(section.name)) do
    local case = section:case_name(raw)
    local key = table.concat({ section.name, raw.requested_world_size, case, raw.rank,
      raw.cycle }, "\0")
    for _, metric in ipairs(metrics) do
      if raw[metric] ~= nil and type(raw[metric]) ~= "string" then
        rows[#rows + 1] = {
          section = section.name, world_size = raw.world_size, case_name = case,
          metric = metric, cycle = raw.cycle, rank = raw.rank, value = raw[metric],
          correct = not failed[key], requested_world_size = raw.requested_world_size,
          times_valid = raw.times_valid,
        }
      end
    end
  end
  return rows
end

local function named(pairs_in_order)
  local rows = {}
  for i, pair in ipairs(pairs_in_order) do rows[i] = { name = pair[1], value = pair[2] } end
  return rows
end

local function single(field, texts)
  local rows = {}
  for i, text in ipairs(texts) do rows[i] = { [field] = text } end
  return rows
end

-- "case" and "check" are words of SQL.
local function without_keywords(rows)
  local copies = {}
  for i, row in ipairs(rows) do
    local copy = { case_name = row.case, check_name = row.check }
    for key, value in pairs(row) do copy[key] = value end
    copies[i] = copy
  end
  return copies
end

-- Every file there is now; the manifest and this database come later.
local function artifacts(run)
  local rows = {}
  for i, path in ipairs(files.list(run.folder)) do
    local text = assert(files.read(run:path(path)))
    rows[i] = { path = path, bytes = #text, sha256 = hash.sha256(text) }
  end
  return rows
end

local MEASUREMENT = { "section", "world_size", "case_name", "metric", "cycle", "rank",
  "value", "correct", "requested_world_size", "times_valid" }
local CONTRACT = { "section", "world_size", "case_name", "rank", "cycle", "check_name",
  "correct", "requested_world_size" }
local SUMMARY = { "section", "world_size", "case_name", "metric", "median", "p95",
  "cv_percent", "samples", "correct", "requested_world_size", "times_valid" }

-- What follows from the raw rows.
local function fill_derived(db, run)
  local failed = failures(run.contracts)
  for _, section in ipairs(run.chapter.sections) do
    db:insert("measurement", measurements(run, section, failed), MEASUREMENT)
  end
  db:insert("contract", without_keywords(run.contracts), CONTRACT)
  db:insert("summary", without_keywords(run.summary), SUMMARY)
end

local function fill(db, run, kept)
  db:insert("run", { run:identity() })
  db:insert("option", named(run.texts))
  db:insert("fact", named(run.facts))
  db:insert("fact", named(environment.variables()))
  db:insert("note", single("text", run.notes))
  db:insert("command", single("line", run.commands))
  db:insert("world", run.worlds)
  fill_derived(db, run)
  db:insert("artifact", kept)
end

-- The rows of a table as one text each, NULL told from "".
local function dump(db, name, columns)
  local list = {}
  for row in db:rows(("select * from %s"):format(name)) do
    local values = {}
    for i, column in ipairs(columns) do
      local value = row[column]
      values[i] = type(value) == "number" and ("%q"):format(value) or tostring(value)
    end
    list[#list + 1] = table.concat(values, "\0")
  end
  return list
end

---Where a database is not what a run's raw rows give.
---@param run run with its tables derived
---@param db sqlite.database
---@return string[] differences
---@return integer tables that were compared
function results.compare(run, db)
  local again <close> = assert(sqlite.open(nil, { mode = "memory" }))
  assert(again:exec(SCHEMA))
  again:transaction(function() fill_derived(again, run) end)
  local differences, tables = {}, { measurement = MEASUREMENT, contract = CONTRACT,
    summary = SUMMARY }
  for name, columns in pairs(tables) do
    local is, should = dump(db, name, columns), dump(again, name, columns)
    for i = 1, math.max(#is, #should) do
      if is[i] ~= should[i] then
        local text = "%s: table %s: row %d is not what the raw rows give"
        differences[#differences + 1] = text:format(results.FILE, name, i)
        break
      end
    end
  end
  return differences, 3
end

---@param run run with its tables derived
function results.write(run)
  local path = run:path(results.FILE)
  local kept, temporary = artifacts(run), files.temporary(path)
  do
    local db <close> = assert(sqlite.open(temporary, { mode = "rw" }))
    assert(db:exec(SCHEMA))
    db:transaction(function() fill(db, run, kept) end)
  end
  assert(files.rename(temporary, path))
end

return results
