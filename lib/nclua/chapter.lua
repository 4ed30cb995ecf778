--- A chapter: an experiment as one command. This is where options, the run's directory, the
--- order of the evidence and the exit status are; the chapter itself says what is measured.
local chapter = {}

local cuda = require("nclua.cuda")
local environment = require("nclua.environment")
local hash = require("nclua.hash")
local inventory = require("nclua.inventory")
local manifest = require("nclua.manifest")
local measure = require("nclua.measure")
local options = require("nclua.options")
local report_page = require("nclua.report_page")
local results = require("nclua.results")
local run = require("nclua.run")
local size = require("nclua.size")
local source = require("nclua.source")
local summary = require("nclua.summary")

---@class chapter.spec
---@field name string of the command
---@field needs? string "0.1": the oldest nclua that can run it
---@field experiment string folder below ROOT/logs
---@field title string
---@field sections section[]
---@field options options.row[] its own; those of every chapter are added, unless it has its
---own of the same name
---@field without? string[] options of every chapter that this one has no use for
---@field defaults? table<string, string|number> of options that every chapter has
---@field largest? table<string, integer> by backend, for --largest auto
---@field summary_file? string where all sections' statistics go, if not to summary.csv
---@field summary_rule? string for the manifest, if not that of `critical_path`
---@field debug? table<string, string> NCCL's debug variables in its worlds

---@class chapter: chapter.spec
---@field measure fun(run: run, opt: table) set by the script
---@field check? fun(opt: table): string? set by the script: what is wrong with the options
---taken together
---@field conclude? fun(run: run, opt: table) set by the script: makes more tables when
---those of the sections are there
---@field report? fun(run: run) set by the script: what is printed instead of summary.md
---@field boundary string[] what a run does and does not show
---@field remarks manifest.pair[] what the manifest shall say as well
local methods = {}
methods.__index = methods

local EXIT_FAILURE, EXIT_USAGE = 1, 2
local EXIT_INTERRUPTED = 130 -- as a shell says it of Ctrl-C

local function common_options(sections, defaults)
  local names = { "all" }
  for i, section in ipairs(sections) do names[i + 1] = section.name end
  local rows = {
    { "root", ".", "results go to ROOT/logs/EXPERIMENT/RUN_ID" },
    { "run_id", os.date("!%Y%m%dT%H%M%SZ"), "name of the run" },
    { "cycles", 10, "measured cycles of every case", min = 1, oversubscribed = 1 },
    { "warmups", 3, "cycles before them that are not recorded", min = 0,
      oversubscribed = 0 },
    { "sections", "all", "what to run, comma-separated", kind = "list", choices = names },
    { "largest", "auto", "largest message; auto fits the backend", kind = "size" },
    { "backend", "auto", "auto, cpu or cuda", choices = { "auto", "cpu", "cuda" } },
    { "cpu_affinity", "auto", "CPU of rank 0, 1, ...", kind = "integers" },
    { "timeout", 60, "seconds without progress that end a world", min = 1 },
    { "oversubscribe", false, "more ranks than devices: right sums, meaningless times" },
    { "traceback", false, "show the stack of an error" },
  }
  for _, row in ipairs(rows) do
    if defaults[row[1]] ~= nil then row[2] = defaults[row[1]] end
  end
  return rows
end

---Defines the chapter that the calling script is.
---@param spec chapter.spec
---@return chapter
function chapter.new(spec)
  if spec.needs then
    local ok, message = inventory.needs(spec.needs)
    if not ok then error(("%s: %s"):format(spec.name, message), 0) end
  end
  local one = setmetatable({ boundary = {}, remarks = {} }, methods)
  for key, value in pairs(spec) do one[key] = value end
  one.source = source.of(2)
  one.rows = table.move(spec.options, 1, #spec.options, 1, {})
  local is_known = {}
  for _, row in ipairs(spec.options) do is_known[row[1]] = true end
  for _, name in ipairs(spec.without or {}) do is_known[name] = true end
  for _, row in ipairs(common_options(spec.sections, spec.defaults or {})) do
    if not is_known[row[1]] then one.rows[#one.rows + 1] = row end
  end
  return one
end

-- Ranks that share a GPU take turns of milliseconds a call, and their times mean nothing:
-- what is measured often for statistics' sake is measured less.
local function make_do_with_less(rows, parsed)
  if not parsed.values.oversubscribe then return end
  for i, row in ipairs(rows) do
    if row.oversubscribed and not parsed.given[row[1]] then
      parsed.values[row[1]] = row.oversubscribed
      parsed.texts[i][2] = tostring(row.oversubscribed)
    end
  end
end

-- What only the chapter can see, once the backend is chosen.
local function refusal(self, opt)
  if not self.check then return end
  if opt.backend ~= "auto" then cuda.backend(opt.backend) end
  return self.check(opt)
end

-- Options whose default depends on the backend, once that is known.
local function resolve(self, opt, texts)
  if opt.backend ~= "auto" then cuda.backend(opt.backend) end
  if opt.largest == "auto" then
    local own = self.largest and self.largest[cuda.backend()]
    opt.largest = own or measure.largest(cuda.backend())
  end
  for _, text in ipairs(texts) do
    if text[1] == "largest" then
      text[2] = ("%s (%s)"):format(text[2], size.format(opt.largest))
    elseif text[1] == "backend" then
      text[2] = cuda.backend()
    end
  end
end

local function new_run(self, parsed)
  local opt = parsed.values
  make_do_with_less(self.rows, parsed)
  resolve(self, opt, parsed.texts)
  return run.new({
    chapter = self, id = opt.run_id, opt = opt, texts = parsed.texts,
    backend = cuda.backend(), command_line = environment.command_line(),
    folder = opt.resume and opt.resume ~= "" and opt.resume
      or ("%s/logs/%s/%s"):format(opt.root, self.experiment, opt.run_id),
  })
end

local function check_contracts(self)
  self.contracts = self:rows("contracts")
  local failed, first = 0, nil
  for _, row in ipairs(self.contracts) do
    if not row.correct then
      failed, first = failed + 1, first or row
    end
  end
  if failed == 0 then return end
  local text = "%d of %d contracts failed, the first: %s, %s, rank %d of %d, cycle %d: %s"
  error(text:format(failed, #self.contracts, first.section, first.case, first.rank,
    first.world_size, first.cycle, first.check), 0)
end

-- The order of the evidence: raw rows are written, then what is made from them.
local function complete(self)
  self:know_the_others()
  check_contracts(self)
  for _, section in ipairs(self.chapter.sections) do self:derive(section) end
  if self.chapter.conclude then self.chapter.conclude(self, self.opt) end
  local file = self.chapter.summary_file or "summary.csv"
  if #self.summary > 0 then self:write_table(file, summary.COLUMNS, self.summary) end
  self:write("summary.md", summary.encode(self))
  self.finished_utc = os.date("!%Y-%m-%dT%H:%M:%SZ")
  results.write(self)
  assert(report_page.write(self.folder))
  if self.interrupted then return end
  self:write(manifest.FILE, manifest.encode(self:manifest(), self.commands))
end

---The chapter that a script defines, without running it.
---@param chunk function the script
---@return chapter? chapter
---@return string? message
function chapter.defined_by(chunk)
  local main, defined = methods.main, nil
  methods.main = function(self) defined = self end
  local ok, message = pcall(chunk)
  methods.main = main
  if not ok then return nil, tostring(message) end
  if not defined then return nil, "the script defines no chapter" end
  return defined
end

---@param name string
---@return section
function methods:section(name)
  for _, section in ipairs(self.sections) do
    if section.name == name then return section end
  end
  error("no such section: " .. name)
end

---What the manifest says of the scripts: each one's checksum.
---@return manifest.pair[]
function methods:scripts()
  local list = {}
  for i, section in ipairs(self.sections) do list[i + 1] = section.source end
  list[1] = self.source
  for i, one in ipairs(list) do
    list[i] = { "sha256." .. one.path, hash.sha256(one.text) }
  end
  return list
end

local function measure_and_complete(self, parsed, started)
  started.run = new_run(self, parsed)
  self.measure(started.run, parsed.values)
  if not started.run.is_leader then return end
  local done = started.run
  complete(done)
  if self.report then
    self.report(done)
  else
    io.write(summary.encode(done), "run_dir=", done.folder, "\n")
  end
  if done.failure then error(done.failure, 0) end
  if done.interrupted then error(done.interrupted, 0) end
end

-- Details first; the last line says what failed and where the evidence is.
local function say(self, message, folder)
  local headline, details = message:match("^([^\n]*)\n?(.-)\n*$")
  local evidence = folder and "; evidence: " .. folder or ""
  if details ~= "" then io.stderr:write(details, "\n") end
  io.stderr:write(self.name, ": ", headline, evidence, "\n")
end

---Runs the chapter with the script's arguments and ends the program unless all is well.
---@param args? string[] default: the global arg
function methods:main(args)
  local description = options.header(self.source.text)
  local parsed, message = options.parse(self.name, description, self.rows, args or arg)
  if not parsed then
    say(self, message .. " (try --help)")
    os.exit(EXIT_USAGE)
  elseif parsed.help then
    print(parsed.help)
    return
  end
  message = refusal(self, parsed.values)
  if message then
    say(self, message .. " (try --help)")
    os.exit(EXIT_USAGE)
  end
  local started = {}
  local handler = parsed.values.traceback and debug.traceback or tostring
  local ok, why = xpcall(measure_and_complete, handler, self, parsed, started)
  if ok then return end
  local is_interrupted = started.run and started.run.interrupted
  say(self, why, started.run and started.run.folder)
  os.exit(is_interrupted and EXIT_INTERRUPTED or EXIT_FAILURE)
end

return chapter
