--- One experiment of a chapter: its cases, what a rank measures, and the table it becomes.
--- A chapter fills in the functions; see `chapter:section`.
local section = {}

local source = require("nclua.source")

---@class section.spec
---@field title string
---@field columns string of a raw row, in words: world_size, rank, cycle and the case's own
---@field keys string which of them make a case
---@field case string|fun(case: table): string name of a case: "bytes={size_bytes}"
---@field metric string what summary.csv calls the statistic
---@field summary string columns of the section's table, in words
---@field summary_file? string default: NAME_summary.csv
---@field summary_name? string default: NAME; what summary.csv calls the section
---@field raw_file? string where `prepare`'s rows go
---@field report? report.column[] without it the table is in its file alone

---@class section: section.spec
---@field name string
---@field columns string[]
---@field keys string[]
---@field summary string[]
---@field cases fun(opt: table, world_size: integer): table[] the cases, with their keys
---@field measure fun(rank: section.rank, case: table) in each rank, for each case
---@field prepare? fun(rows: table[]): table[] raw rows of all ranks into what is summarised
---@field summarise fun(case: critical_path.case, opt: table): table, table? the statistic
local methods = {}
methods.__index = methods

-- What every row carries at its end, whatever the section.
local MARKS = { "world_size", "rank", "requested_world_size", "backend", "times_valid" }
local SUMMARY_MARKS = { "world_size", "requested_world_size", "backend", "times_valid" }

local function words(text, marks)
  local list, seen = {}, {}
  for word in text:gmatch("%S+") do list[#list + 1], seen[word] = word, true end
  for _, mark in ipairs(marks) do
    if not seen[mark] then list[#list + 1] = mark end
  end
  return list
end

---@param name string
---@param spec section.spec
---@return section
function section.new(name, spec)
  local one = {}
  for key, value in pairs(spec) do one[key] = value end
  one.name = name
  one.source = source.of(2)
  if spec.raw_columns then one.raw_columns = words(spec.raw_columns, SUMMARY_MARKS) end
  one.columns = words(spec.columns, MARKS)
  one.is_column = {}
  for _, column in ipairs(one.columns) do one.is_column[column] = true end
  one.keys = words(spec.keys, { "requested_world_size", "world_size" })
  one.summary = words(spec.summary, SUMMARY_MARKS)
  one.summary_file = spec.summary_file or name .. "_summary.csv"
  one.summary_name = spec.summary_name or name
  setmetatable(one, methods)
  one.measured = one:metrics()
  return one
end

---@param case table a case, or a row of one
---@return string
function methods:case_name(case)
  if type(self.case) == "function" then return self.case(case) end
  return (self.case:gsub("{([%w_]+)}", function(key)
    return tostring(assert(case[key], key))
  end))
end

---The columns that were measured: neither keys, nor marks, nor the cycle.
---@return string[]
function methods:metrics()
  local known = { cycle = true, correct = true }
  for _, mark in ipairs(MARKS) do known[mark] = true end
  for _, key in ipairs(self.keys) do known[key] = true end
  local list = {}
  for _, column in ipairs(self.columns) do
    if not known[column] then list[#list + 1] = column end
  end
  return list
end

-- A misspelt name would leave a hole in the table.
function methods:check_row(row)
  for key in pairs(row) do
    if not self.is_column[key] then
      error(("section %s has no column '%s'"):format(self.name, key), 3)
    end
  end
  for _, column in ipairs(self.measured) do
    if row[column] == nil then
      error(("section %s: no value for '%s'"):format(self.name, column), 3)
    end
  end
end

---What a section's `measure` sees of its rank: the collective world, and where rows go.
---@class section.rank
---@field index integer from 0
---@field count integer
---@field comm nccl.comm one for the whole world
---@field stream cuda.stream one a section
---@field opt table the chapter's options
---@field cycle integer the cycle that runs; negative while warming up
local view = {}
view.__index = view

---Measures every case of a section in this rank.
---@param self section
---@param rank ranks.rank
---@param world { comm: nccl.comm, stream: cuda.stream, opt: table }
function methods:run(rank, world)
  local seen = setmetatable({
    index = rank.index, count = rank.count, comm = world.comm, stream = world.stream,
    opt = world.opt, cycle = 0, inner = rank, section = self,
  }, view)
  for _, case in ipairs(self.cases(world.opt, rank.count)) do
    seen.case = case
    seen:report_progress()
    self.measure(seen, case)
  end
end

---All ranks meet here, with nothing left in the section's stream.
function view:barrier()
  self.inner:barrier(self.stream)
end

---From now on rows and contracts belong to this case: for a section that measures several
---in turns.
---@param case table with all keys of the section
function view:enter(case)
  self.case = case
end

---Something that was found out here and holds for the whole run.
---@param name string
---@param value any
function view:fact(name, value)
  if self.index == 0 then self.inner:emit("facts", { name, value }) end
end

---Iterates over the cycles of a case: warm-ups first, whose rows are not kept.
---@param options? { warmups: integer } default: the chapter's option
---@return fun(): integer?
function view:cycles(options)
  local next_cycle = -(options and options.warmups or self.opt.warmups)
  return function()
    if next_cycle >= self.opt.cycles then
      self.cycle = 0
      return nil
    end
    self.cycle, next_cycle = next_cycle, next_cycle + 1
    self:report_progress()
    return self.cycle
  end
end

---Iterates over a list instead of repeating: entry i is cycle i - 1.
---@generic T
---@param list T[]
---@return fun(): T?
function view:each(list)
  self.cycle = -1
  return function()
    self.cycle = self.cycle + 1
    return list[self.cycle + 1]
  end
end

-- Rank 0 speaks for the world: the others are never far.
function view:report_progress()
  if self.index > 0 then return end
  self.inner:emit("progress", { section = self.section.name,
    case = self.section:case_name(self.case), cycle = self.cycle })
end

---Keeps a row: what was measured in this cycle of the case.
---@param row table<string, number|string|boolean>
function view:emit(row)
  if self.cycle < 0 then return end
  self.section:check_row(row)
  for key, value in pairs(self.case) do row[key] = value end
  row.cycle, row.rank, row.world_size = self.cycle, self.index, self.count
  self.inner:emit(self.section.name, row)
end

---A contract: what must hold, whatever the times are. One that fails fails the run. Of the
---warm-ups only failures are kept.
---@param check string what was checked, in a few words
---@param correct boolean
function view:check(check, correct)
  if self.cycle < 0 and correct then return end
  self.inner:emit("contracts", {
    section = self.section.name, case = self.section:case_name(self.case),
    cycle = self.cycle, check = check, correct = correct,
    rank = self.index, world_size = self.count,
  })
end

section.contract_columns = words("section world_size rank case cycle check correct",
  { "requested_world_size", "backend", "times_valid" })

return section
