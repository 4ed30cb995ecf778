--- A collective is as slow as its slowest rank: each cycle counts with the maximum over
--- ranks, and statistics are over cycles.
local critical_path = {}

local stats = require("nclua.stats")

---@class critical_path.statistic
---@field median number
---@field p95 number nearest rank
---@field min number
---@field max number
---@field cv_percent number population
---@field samples integer cycles

---@param values number[]|stats.vector not empty
---@return critical_path.statistic
function critical_path.statistic(values)
  return {
    median = stats.median(values),
    p95 = stats.percentile(values, 0.95, "nearest_rank"),
    min = stats.min(values),
    max = stats.max(values),
    cv_percent = stats.cv_percent(values),
    samples = #values,
  }
end

local meta = {}

local function new_case(rows, keys, cases)
  return setmetatable({ rows = rows, keys = keys, cases = cases }, meta)
end

---Rows of one case. The fields of `keys` can be read from the case itself.
---@class critical_path.case
---@field rows table[]
---@field [string] any
local case = {}

-- A method is found first; then the case's own keys, held in the first row.
function meta:__index(name)
  if case[name] then return case[name] end
  local first = rawget(self, "rows")[1]
  return first and first[name]
end

---The slowest rank of every cycle, in the order of the cycles.
---@param field string
---@return number[]
function case:slowest_of(field)
  local by_cycle, cycles = {}, {}
  for _, row in ipairs(self.rows) do
    local known = by_cycle[row.cycle]
    if not known then cycles[#cycles + 1] = row.cycle end
    by_cycle[row.cycle] = math.max(known or -math.huge, row[field])
  end
  table.sort(cycles)
  for i, cycle in ipairs(cycles) do cycles[i] = by_cycle[cycle] end
  return cycles
end

---@param field string
---@return critical_path.statistic
function case:slowest(field)
  return critical_path.statistic(self:slowest_of(field))
end

---@param field string
---@return number over all ranks and cycles
function case:sum(field)
  local sum = 0
  for _, row in ipairs(self.rows) do sum = sum + row[field] end
  return sum
end

---The same case with only those of its rows that have these values.
---@param wanted table<string, any>
---@return critical_path.case
function case:where(wanted)
  local rows = {}
  for _, row in ipairs(self.rows) do
    local matches = true
    for key, value in pairs(wanted) do matches = matches and row[key] == value end
    if matches then rows[#rows + 1] = row end
  end
  return new_case(rows, self.keys, self.cases)
end

---How often a field is true, over all ranks and cycles: 0 to 1.
---@param field string
---@return number
function case:rate(field)
  local count = 0
  for _, row in ipairs(self.rows) do
    if row[field] then count = count + 1 end
  end
  return count / #self.rows
end

---The case of the same keys but for those given.
---@param different table<string, any>
---@return critical_path.case
function case:with(different)
  for _, other in ipairs(self.cases) do
    local same = true
    for _, key in ipairs(self.keys) do
      local wanted = different[key]
      if wanted == nil then wanted = self[key] end
      same = same and other[key] == wanted
    end
    if same then return other end
  end
  error("no such case was measured", 2)
end

local function identity(row, keys)
  local values = {}
  for i, key in ipairs(keys) do values[i] = tostring(row[key]) end
  return table.concat(values, "\0")
end

---Sorts rows into cases: those whose keys are equal. In the order in which they were met,
---which is the order of measurement.
---@param rows table[]
---@param keys string[]
---@return critical_path.case[]
function critical_path.cases(rows, keys)
  local cases, known = {}, {}
  for _, row in ipairs(rows) do
    local id = identity(row, keys)
    local one = known[id]
    if not one then
      one = new_case({}, keys, cases)
      known[id], cases[#cases + 1] = one, one
    end
    one.rows[#one.rows + 1] = row
  end
  return cases
end

return critical_path
