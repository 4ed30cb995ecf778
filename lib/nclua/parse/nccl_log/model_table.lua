--- The model table that rank 0 prints: latency and algorithm bandwidth of every
--- collective, algorithm and protocol. 2.6 to 2.17: one wide block, whose header pairs
--- "Tree/ LL"; since 2.18: blocks of three algorithms, the last one (PAT) with fewer values
--- than headings.
local context = require("nclua.parse.nccl_log.context")
local foreign = require("nclua.parse.foreign")
local names = require("nclua.cost_model.names")

local model_table = { HANDLERS = {} }

-- What stands between bars.
local function cells_of(text)
  local cells, bar = {}, text:find("|", 1, true)
  while bar do
    local next_bar = text:find("|", bar + 1, true)
    if next_bar then cells[#cells + 1] = foreign.trim(text:sub(bar + 1, next_bar - 1)) end
    bar = next_bar
  end
  return cells
end

-- "Algorithm | Tree | Ring |": three columns each
local function take_algorithms(one, text)
  one.columns = {}
  for _, name in ipairs(cells_of(text)) do
    for _, protocol in ipairs(names.PROTOCOLS) do
      table.insert(one.columns, { name, protocol })
    end
  end
end

-- "Latency/AlgBw | Tree/ LL | Tree/ LL128 |"
local function take_pairs(one, text)
  one.columns = {}
  for _, cell in ipairs(cells_of(text)) do
    local algorithm, protocol = cell:match("^(%S-)/%s*(%S+)$")
    table.insert(one.columns, { algorithm or cell, protocol or "?" })
  end
end

local function set(into, column, value)
  into[column[1]] = into[column[1]] or {}
  into[column[1]][column[2]] = value
end

-- The wide header stands before this row, the narrow ones too.
local function take_threads(one, text)
  one.max_threads = one.max_threads or {}
  for i, cell in ipairs(cells_of(text)) do
    local column = one.columns[i]
    if column then set(one.max_threads, column, math.tointeger(tonumber(cell))) end
  end
end

-- The values of a row; false where a cell is none. Communicators mostly print the same.
local function values_of(self, text)
  local known = self.rows_seen[text]
  if known then return known end
  local values = cells_of(text)
  for i, cell in ipairs(values) do
    local latency, bandwidth = cell:match("^(%S-)/%s*(%S+)$")
    latency, bandwidth = tonumber(latency), tonumber(bandwidth)
    values[i] = latency and bandwidth
      and { latency_us = latency, bandwidth_gbps = bandwidth } or false
  end
  if self:keep(text) then self.rows_seen[text] = values end
  return values
end

local function take_row(self, one, text, line)
  local collective = names.collective(text:match("^%s*(%a+)"))
  local values = values_of(self, text)
  one.tuning = one.tuning or {}
  one.tuning[collective] = one.tuning[collective] or {}
  for i, value in ipairs(values) do
    local column = one.columns[i]
    if column and value then
      set(one.tuning[collective], column, value)
    else
      self:issue(line, "a table cell that could not be read", text)
    end
  end
  if #values == 0 then self:issue(line, "a table row that was cut", text) end
end

function model_table.HANDLERS.table(self, text, line, thread, is_glued)
  if is_glued then
    return self:issue(line, "a table row that another message ran into", text)
  end
  local one = context.of(self, thread, line)
  if not one then return end
  local head = text:match("^%s*(%S+)")
  if head == "Algorithm" then return take_algorithms(one, text) end
  if head == "Latency/AlgBw" then return take_pairs(one, text) end
  if head == "Protocol" then return end
  if not one.columns then return self:issue(line, "a table row before its header", text) end
  if head == "Max" then return take_threads(one, text) end
  take_row(self, one, text, line)
end

return model_table
