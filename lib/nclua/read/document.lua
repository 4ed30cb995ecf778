--- What every reader fills: facts, tables and problems.
local document = {}

local MOST_PROBLEMS = 300

local Document = {}
Document.__index = Document

--- A fact, unless there is none.
function Document:fact(name, value)
  if value ~= nil then self.facts[#self.facts + 1] = { name, value } end
end

--- A table, unless it is empty.
---@param name string
---@param columns string[]
---@param rows table[]
function Document:table(name, columns, rows)
  if #rows == 0 then return end
  self.tables[#self.tables + 1] = { name = name, columns = columns, rows = rows }
end

--- Something that was not understood; `count` of them, of which this is one.
function Document:problem(why, text, line, count)
  self.problem_count = self.problem_count + (count or 1)
  if #self.problems == MOST_PROBLEMS then return end
  self.problems[#self.problems + 1] = { line = line, why = why, text = text }
end

---@param kind string
---@return nclua.read.document
function document.new(kind)
  return setmetatable({
    kind = kind, facts = {}, tables = {}, problems = {}, problem_count = 0,
  }, Document)
end

return document
