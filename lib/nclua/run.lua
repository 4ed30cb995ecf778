--- One run of a chapter: its directory, what happened in it, and how it is completed.
---
--- Raw rows and raw output come first, then the tables made from them, each file under a
--- temporary name and then renamed; the manifest is last.
local run = {}

local critical_path = require("nclua.critical_path")
local csv = require("nclua.csv")
local inventory = require("nclua.inventory")
local environment = require("nclua.environment")
local files = require("nclua.files")
local manifest = require("nclua.manifest")
local process = require("nclua.process")
local ranks = require("nclua.ranks")
local worlds = require("nclua.worlds")

---@class run
---@field folder string
---@field id string
---@field opt table<string, any>
---@field chapter chapter
---@field backend "cpu"|"cuda"
---@field is_leader boolean false in a launcher's process other than 0, which writes nothing
---@field commands string[] everything that was started, for the manifest
---@field facts environment.fact[]
---@field notes string[] what every reader must know: a small world, a missing program
---@field contracts table[] rows of all worlds, once they are read
---@field worlds worlds.done[]
---@field tables table<string, table[]> summary rows by section
---@field summary table[] rows of summary.csv
---@field failure? string see `run:fail`
---@field interrupted? string why it ended early, with what there was: then there is no
---manifest
---@field parts { [1]: string, [2]: string }[] title and text, for summary.md
local methods = {}
methods.__index = methods

local function check(ok, message)
  if not ok then error(message, 0) end
  return ok
end

---@param fields table chapter, id, folder, opt, texts, backend, command_line
---@return run
function run.new(fields)
  local one = setmetatable({
    commands = {}, facts = environment.host(), notes = {}, contracts = {}, worlds = {},
    tables = {}, summary = {}, parts = {}, started_utc = os.date("!%Y-%m-%dT%H:%M:%SZ"),
  }, methods)
  for key, value in pairs(fields) do one[key] = value end
  one.cpu_use = environment.cpu_use()
  local launcher = ranks.launcher()
  one.is_leader = not launcher or launcher.index == 0
  if launcher then
    one:note(("a world of %d ranks, made by %s"):format(launcher.count, launcher.launcher))
  end
  if not one.is_leader then return one end
  if one.opt.resume == one.folder then
    check(files.exists(one.folder), one.folder .. ": no such run")
    check(not files.exists(one:path(manifest.FILE)), one.folder .. " is complete")
  else
    check(not files.exists(one.folder), one.folder .. " exists: choose another --run-id")
  end
  for _, below in ipairs({ "raw/results", "raw/nccl", "artifacts" }) do
    check(files.make_folder(one:path(below)))
  end
  return one
end

---A run that is done, to make its tables again from the raw files.
---@param fields table chapter, folder, opt, facts, worlds
---@return run
function run.reopen(fields)
  local one = setmetatable({
    commands = {}, notes = {}, tables = {}, summary = {}, parts = {}, texts = {},
    is_leader = true,
  }, methods)
  for key, value in pairs(fields) do one[key] = value end
  one.contracts = one:rows("contracts")
  return one
end

---@param name string
---@return string path in the run's directory
function methods:path(name)
  return self.folder .. "/" .. name
end

---@param name string
---@param value any replaces what was known
function methods:fact(name, value)
  for _, fact in ipairs(self.facts) do
    if fact[1] == name then
      fact[2] = value
      return
    end
  end
  self.facts[#self.facts + 1] = { name, value }
end

---@param name string
---@return any value nil if the fact is not known
function methods:known(name)
  for _, fact in ipairs(self.facts) do
    if fact[1] == name then return fact[2] end
  end
end

---Keeps how much of the CPUs others used since the run began.
function methods:know_the_others()
  local percent = environment.cpu_of_others(self.cpu_use, environment.cpu_use())
  if percent then self:fact("cpu_of_others_percent", ("%.0f"):format(percent)) end
end

---Says something on the terminal, in summary.md and in the manifest.
---@param text string
function methods:note(text)
  for _, known in ipairs(self.notes) do
    if known == text then return end
  end
  self.notes[#self.notes + 1] = text
end

---@param name string
---@param text string
function methods:write(name, text)
  if not self.is_leader then return end
  check(files.write(self:path(name), text))
end

---Something that was to be shown has failed. The run is completed, with all its evidence,
---and then ends the program with this message.
---@param message string
function methods:fail(message)
  self.failure = self.failure or message
  self:note("FAILED: " .. message)
end

---Adds a part of summary.md, after the sections' own.
---@param title string
---@param text string markdown
function methods:part(title, text)
  self.parts[#self.parts + 1] = { title, text }
end

---Writes a table, which must not be empty.
---@param name string
---@param columns string[]
---@param rows table[]
function methods:write_table(name, columns, rows)
  check(csv.write(self:path(name), columns, rows))
end

---Notes a command for the manifest, with the variables that were set for it.
---@param text string
---@param env? table<string, string|number|false> false: removed
function methods:command(text, env)
  local words = {}
  for name, value in pairs(env or {}) do
    words[#words + 1] = value and ("%s=%s"):format(name, value) or "-u " .. name
  end
  table.sort(words)
  words[#words + 1] = text
  self.commands[#self.commands + 1] = table.concat(words, " ")
end

local DEBUG = { NCCL_DEBUG = "INFO", NCCL_DEBUG_SUBSYS = "INIT,GRAPH,COLL" }

---NCCL's log of a case goes to raw/nccl, one file a process. A launcher's other processes
---cannot know the name of the directory: what they log is kept with their output.
---@param case string
---@return table<string, string> variables
function methods:debug_environment(case)
  local variables = {}
  for name, value in pairs(self.chapter.debug or DEBUG) do variables[name] = value end
  local file = self:path(("raw/nccl/%s_%%h_%%p.log"):format(case))
  variables.NCCL_DEBUG_FILE = self.is_leader and file or nil
  return variables
end

---@param section section
---@return boolean
function methods:is_selected(section)
  for _, name in ipairs(self.opt.sections) do
    if name == "all" or name == section.name then return true end
  end
  return false
end

---Measures sections in a world of ranks; see `worlds.measure`.
---@param name string of the case
---@param requested integer ranks
---@param sections section[]
---@param options? worlds.options
function methods:world(name, requested, sections, options)
  worlds.measure(self, name, requested, sections, options)
end

---Keeps what a program says, as artifacts/NAME; that it is not there is an answer, too.
---@param name string
---@param argv string[]
---@return string text
function methods:capture(name, argv)
  self:command(table.concat(argv, " "))
  if not self.is_leader then return "" end
  local result, message = process.run(argv, { stderr = "merge", timeout_s = 60 })
  local text = result and result.stdout or message .. "\n"
  if result and not result.ok then
    local how = result.timed_out and "timed out" or result.signal
      or "exit status " .. result.exit_code
    text = ("%s(%s: %s)\n"):format(text, argv[1], how)
  end
  self:write("artifacts/" .. name, text)
  return text
end

---The rows of a section as they are in the raw files of all worlds, in a fixed order: what
---is made of them can be made again from the directory alone.
---@param name string section, or "contracts"
---@return table[]
function methods:rows(name)
  local rows, pattern = {}, "^[^./]+/rank%d+_" .. name .. "%.csv$"
  for _, path in ipairs(files.list(self:path("raw/results"))) do
    if path:find(pattern) then
      local some = check(csv.read(self:path("raw/results/" .. path)))
      table.move(some, 1, #some, #rows + 1, rows)
    end
  end
  return rows
end

-- Did every contract of a case hold? A case without one has proved nothing.
local function is_correct(self, section, case)
  local name, seen = section:case_name(case), false
  for _, row in ipairs(self.contracts) do
    if row.section == section.name and row.case == name
      and row.requested_world_size == case.requested_world_size then
      if not row.correct then return false end
      seen = true
    end
  end
  return seen
end

local function metric_name(section, case)
  local metric = section.metric
  return type(metric) == "function" and metric(case) or metric
end

local function summary_row(section, case, statistic)
  return {
    section = section.summary_name, world_size = case.world_size,
    case = section:case_name(case), metric = metric_name(section, case),
    median = statistic.median, p95 = statistic.p95, cv_percent = statistic.cv_percent,
    samples = statistic.samples, correct = case.correct,
    requested_world_size = case.requested_world_size, backend = case.backend,
    times_valid = case.times_valid,
  }
end

---Makes a section's table from its raw rows, and its part of summary.csv.
---@param section section
function methods:derive(section)
  local raw = self:rows(section.name)
  if #raw == 0 then return end
  if section.prepare then
    raw = section.prepare(raw)
    self:write_table(section.raw_file, section.raw_columns, raw)
  end
  local rows = {}
  for _, case in ipairs(critical_path.cases(raw, section.keys)) do
    case.correct = is_correct(self, section, case)
    local row, statistic = section.summarise(case, self.opt)
    if row then
      for _, column in ipairs(section.summary) do
        if row[column] == nil then row[column] = case[column] end
      end
      rows[#rows + 1] = row
      if statistic then
        self.summary[#self.summary + 1] = summary_row(section, case, statistic)
      end
    end
  end
  self:write_table(section.summary_file, section.summary, rows)
  self.tables[section.name] = rows
end

---What is known of the run itself, for results.db.
---@return table<string, string>
function methods:identity()
  local identity = {
    run_id = self.id, experiment = self.chapter.experiment, chapter = self.chapter.name,
    title = self.chapter.title, started_utc = self.started_utc,
    finished_utc = self.finished_utc, nclua_version = inventory.version(),
    backend = self.backend,
  }
  identity.hostname = self:known("hostname")
  return identity
end

---@return manifest.pair[]
function methods:manifest()
  local list = {
    { "experiment", self.chapter.experiment },
    { "run_id", self.id },
    { "timestamp_utc", self.started_utc },
    { "finished_utc", self.finished_utc },
    { "nclua_version", inventory.version() },
  }
  local function append(more)
    table.move(more, 1, #more, #list + 1, list)
  end
  append(self.facts)
  append(environment.variables())
  append(self.chapter:scripts())
  append(self.texts)
  for _, world in ipairs(self.worlds) do
    list[#list + 1] = { "world." .. world.name, ("%d ranks of %d requested, %.3f s"):format(
      world.world_size, world.requested_world_size, world.wall_s) }
  end
  for _, note in ipairs(self.notes) do list[#list + 1] = { "note", note } end
  append(self.chapter.remarks)
  append({
    { "critical_path_summary", self.chapter.summary_rule or
      "max rank duration per cycle, then median/P95 (nearest rank)/CV across cycles" },
  })
  for _, name in ipairs({ "NCCL_DEBUG", "NCCL_DEBUG_SUBSYS" }) do
    list[#list + 1] = { name, (self.chapter.debug or DEBUG)[name] }
  end
  return list
end

return run
