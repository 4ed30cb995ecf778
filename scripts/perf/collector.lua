--- The parent's side: gathers what the ranks send, and once all rows of a size are there,
--- keeps them, journals them and shows them. Half a size is never kept.
local collectives = require("perf.collectives")
local csv = require("nclua.csv")
local journal = require("perf.journal")
local result = require("perf.result")

local collector = {}

---@class perf.collector
---@field run run
---@field opt table
---@field layout perf.layout
---@field journal? perf.journal
---@field sinks perf.sink[] files that get each row of the table
---@field context perf.context
---@field kept table<integer, table<string, table[]>> by rank and section
---@field shown integer cases
---@field cases perf.case[]
local methods = {}
methods.__index = methods

---@param fields table
---@return perf.collector
function collector.new(fields)
  fields.kept, fields.pending, fields.devices, fields.shown = {}, {}, {}, 0
  for rank = 0, fields.opt.ranks - 1 do
    fields.kept[rank], fields.pending[rank] = {}, {}
  end
  fields.done = {}
  return setmetatable(fields, methods)
end

local function add(rows, rank, section, row)
  local of_rank = rows[rank]
  of_rank[section] = of_rank[section] or {}
  table.insert(of_rank[section], row)
end

local function pick(entries, section, place)
  local rows = {}
  for _, entry in ipairs(entries) do
    if entry.section == section and entry.row.place == place then
      rows[#rows + 1] = entry.row
    end
  end
  return rows
end

-- The result of one placement; nil if there is none.
function methods:result(entries, place)
  local rows = pick(entries, "perf", place)
  if #rows == 0 then return nil end
  return result.of(rows, pick(entries, "iterations", place), self.context)
end

-- The table of a collective begins with its first row, and ends with its last.
function methods:turn_to(name)
  if name == self.current then return end
  if self.current then self.layout:finish() end
  self.current = name
  if name then self.layout:begin(collectives[name], self.devices) end
end

function methods:show(case, entries)
  local out, in_place = self:result(entries, "out"), self:result(entries, "in")
  if not (self.opt.nccl_tests ~= "" and self.opt.layout == "nccl-tests") then
    self:turn_to(case.collective)
    self.layout:row(out, in_place)
    io.stdout:flush()
  end
  for _, sink in ipairs(self.sinks) do sink:add(out, in_place) end
end

-- All ranks have sent everything of a case.
function methods:complete(case, entries)
  for _, entry in ipairs(entries) do
    add(self.kept, entry.rank, entry.section, entry.row)
  end
  self.done[case.name] = true
  self.shown = self.shown + 1
  self:show(case, entries)
end

-- What is done, of those that were given to the ranks, in their order.
function methods:try_complete()
  while true do
    local entries, case = {}, self.cases[self.next]
    for rank = 0, self.opt.ranks - 1 do
      local queue = self.pending[rank]
      if not case or not queue.done or queue.done < self.next then return end
      for _, entry in ipairs(queue[self.next]) do entries[#entries + 1] = entry end
    end
    for rank = 0, self.opt.ranks - 1 do self.pending[rank][self.next] = nil end
    self.next = self.next + 1
    if self.journal then self.journal:add(case.name, entries) end
    self:complete(case, entries)
  end
end

local on = {}

function on.fact(self, _, row)
  self.run:fact(row[1], row[2])
end

function on.device(self, rank, row)
  row.rank, row.host = rank, self.run:known("hostname")
  self.devices[rank + 1] = row
end

function on.done(self, rank, row)
  self.pending[rank].done = row.case
  self:try_complete()
end

---What `ranks.run` is to call with each row.
---@param cases perf.case[] those that the ranks measure
---@return ranks.on_row
function methods:receiver(cases)
  self.cases, self.next = cases, 1
  return function(rank, section, row)
    if on[section] then return on[section](self, rank, row) end
    local queue = self.pending[rank]
    local at = (queue.done or 0) + 1
    queue[at] = queue[at] or {}
    table.insert(queue[at], { rank = rank, section = section, row = row })
  end
end

---Takes over what an earlier run of the same sweep has measured.
---@param cases perf.case[] all
---@param content perf.journal.content
---@return perf.case[] left to be measured
function methods:restore(cases, content)
  local left = {}
  for _, case in ipairs(cases) do
    local entries = content.cases[case.name]
    if entries then
      self:complete(case, entries)
    else
      left[#left + 1] = case
    end
  end
  return left
end

function methods:finish()
  self:turn_to(nil)
  if self.journal then self.journal:close() end
  for _, sink in ipairs(self.sinks) do sink:close() end
end

---@class perf.sink
---@field add fun(self, out: perf.result, in_place: perf.result?)
---@field close fun(self)

local sink = {}
sink.__index = sink

-- A file that is complete after every size. Logs go elsewhere, so they cannot cut it.
local function open_sink(path, encode, head)
  local file, message = io.open(path, "w")
  if not file then error(message, 0) end
  if head then file:write(head, "\n") end
  file:flush()
  return setmetatable({ file = file, encode = encode }, sink)
end

function sink:add(out, in_place)
  for _, one in ipairs({ out, in_place }) do self.file:write(self.encode(one), "\n") end
  self.file:flush()
end

function sink:close()
  self.file:close()
end

---@param run run
---@param opt table csv, json: paths, or ""
---@return perf.sink[]
function collector.sinks(run, opt)
  local list = {}
  if not run.is_leader then return list end
  if opt.csv ~= "" then
    local head = table.concat(result.COLUMNS, ",")
    list[#list + 1] = open_sink(opt.csv, function(one)
      return csv.encode(result.COLUMNS, { one }):match("\n(.*)\n$")
    end, head)
  end
  if opt.json ~= "" then
    list[#list + 1] = open_sink(opt.json, function(one)
      return journal.encode(one, result.COLUMNS)
    end)
  end
  return list
end

return collector
