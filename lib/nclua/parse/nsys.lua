--- Kernels from an Nsight Systems SQLite export of any schema, from nvprof's database, or
--- from nclua's own trace: the columns that are there decide.
local sqlite = require("nclua.sqlite")

local nsys = {}

---@class nclua.nsys.kernel
---@field name string "?" if the export has no names
---@field start_ns integer
---@field end_ns integer
---@field grid integer[]? x, y, z
---@field block integer[]?
---@field stream integer?
---@field device integer?
---@field correlation integer?

---@class nclua.nsys.trace
---@field path string
---@field tables table<string, string[]> columns by table
---@field name_column string? where a kernel's name comes from
---@field has_kernels boolean
---@field devices table<integer, string> names by id, if the export has them
---@field database sqlite.database
local Trace = {}
Trace.__index = Trace
Trace.__close = function(self) self.database:close() end

local KERNELS = "CUPTI_ACTIVITY_KIND_KERNEL"

-- Most telling first; nvprof has `name`.
local NAME_COLUMNS = { "demangledName", "shortName", "mangledName", "name" }

-- Where names are numbers, the table that holds the texts: nsys, nvprof.
local STRING_TABLES = { { "StringIds", "id" }, { "StringTable", "_id_" } }

local function read_tables(db)
  local tables = {}
  for row in db:rows("select name from sqlite_master where type = 'table'") do
    local columns = {}
    local quoted = sqlite.quote_identifier(row.name)
    for column in db:rows(("pragma table_info(%s)"):format(quoted)) do
      columns[#columns + 1] = column.name
      columns[column.name] = true
    end
    tables[row.name] = columns
  end
  return tables
end

local function name_column(tables)
  local kernels = tables[KERNELS] or {}
  for _, column in ipairs(NAME_COLUMNS) do
    if kernels[column] then return column end
  end
  return nil
end

local function read_devices(db, tables)
  local columns, devices = tables.TARGET_INFO_GPU or {}, {}
  if not columns.id or not columns.name then return devices end
  for row in db:rows("select id, name from TARGET_INFO_GPU") do
    if math.type(row.id) == "integer" then devices[row.id] = tostring(row.name) end
  end
  return devices
end

-- Statements on a damaged file raise.
local function describe(db, path)
  local tables = read_tables(db)
  local kernels = tables[KERNELS]
  return setmetatable({
    path = path, database = db, tables = tables, name_column = name_column(tables),
    has_kernels = kernels ~= nil and kernels.start == true and kernels["end"] == true,
    devices = read_devices(db, tables),
  }, Trace)
end

--- Opens a trace. The file is only read.
---@param path string
---@return nclua.nsys.trace? trace with :kernels(), :summary(), :close() and <close>
---@return string? message
---@return string? code "SQLITE_NOTADB", "SQLITE_CORRUPT"
function nsys.open(path)
  local db, message, code = sqlite.open(path, { mode = "ro" })
  if not db then return nil, message, code end
  local ok, trace = pcall(describe, db, path)
  if ok then return trace end
  db:close()
  return nil, ("%s: %s"):format(path, trace), tostring(trace):match("SQLITE_%u+")
end

local VALUES = {
  start = "start_ns", ["end"] = "end_ns", streamId = "stream", deviceId = "device",
  correlationId = "correlation", gridX = "gx", gridY = "gy", gridZ = "gz", blockX = "bx",
  blockY = "by", blockZ = "bz",
}

-- A name is a text, or the number of one.
local function name_expression(self)
  local column = self.name_column
  if not column then return "'?'", "" end
  local own = "k." .. sqlite.quote_identifier(column)
  for _, strings in ipairs(STRING_TABLES) do
    local columns = self.tables[strings[1]]
    if columns and columns[strings[2]] and columns.value then
      return ("coalesce(s.value, %s)"):format(own),
        (" left join %s s on s.%s = %s"):format(strings[1], strings[2], own)
    end
  end
  return own, ""
end

local function query(self)
  local names, columns = {}, self.tables[KERNELS]
  for theirs, ours in pairs(VALUES) do
    if columns[theirs] then
      names[#names + 1] = ("k.%s as %s"):format(sqlite.quote_identifier(theirs), ours)
    end
  end
  table.sort(names)
  local name, join = name_expression(self)
  return ("select %s as name, %s from %s k%s"):format(name, table.concat(names, ", "),
    KERNELS, join)
end

local function three(x, y, z)
  if not x then return nil end
  return { x, y or 1, z or 1 }
end

local function kernel_of(row)
  return {
    name = row.name == nil and "?" or tostring(row.name), start_ns = row.start_ns,
    end_ns = row.end_ns, grid = three(row.gx, row.gy, row.gz),
    block = three(row.bx, row.by, row.bz), stream = row.stream, device = row.device,
    correlation = row.correlation,
  }
end

--- Iterates over the kernels in order of their start. Raises on a damaged file.
---@return fun(): nclua.nsys.kernel?
function Trace:kernels()
  if not self.has_kernels then return function() end end
  local rows, state, first, guard = self.database:rows(query(self) .. " order by k.start")
  return function()
    local row = rows(state, first)
    return row and kernel_of(row)
  end, nil, nil, guard
end

--- One row for each name, grid and block: how often, and how long (µs).
---@return table[] name, grid_x, block_x, count, total_us, median_us, min_us, max_us
function Trace:summary()
  local list = {}
  if not self.has_kernels then return list end
  local columns = self.tables[KERNELS]
  local groups = { "name" }
  for _, column in ipairs({ "gx", "bx" }) do
    if columns[column == "gx" and "gridX" or "blockX"] then groups[#groups + 1] = column end
  end
  local by = table.concat(groups, ", ")
  for row in self.database:rows(("select %s, count(*) as count, sum(us) as total_us,"
    .. " median(us) as median_us, min(us) as min_us, max(us) as max_us from (select *,"
    .. " (end_ns - start_ns) / 1000.0 as us from (%s)) group by %s order by total_us desc")
    :format(by, query(self), by)) do
    row.grid_x, row.block_x, row.gx, row.bx = row.gx, row.bx, nil, nil
    row.name = row.name == nil and "?" or tostring(row.name)
    list[#list + 1] = row
  end
  return list
end

--- Closes the database.
function Trace:close() self.database:close() end

return nsys
