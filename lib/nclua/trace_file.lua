--- A trace to ask: nclua's own, or Nsight Systems' export of any version. Opening one makes
--- views with the names written out, in a schema of their own, so that it is only read:
---
---   kernels(name, start, "end", us, grid, block, device, stream, correlation, process)
---   copies(kind, bytes, ...)   fills(bytes, ...)   calls(name, ...)   ranges(name, ...)
---
--- Times are ns as in the file, `us` is the duration in µs, `process` and `thread` are the
--- system's numbers. What a file lacks is NULL, or no row.
local lfs = require("lfs")
local sqlite = require("nclua.sqlite")
local trace = require("nclua.trace")

local trace_file = {}

local PREFIX = "CUPTI_ACTIVITY_KIND_"

-- View, table, whether its names are a kernel's, and own columns: view's name, expression.
local VIEWS = {
  { "kernels", "KERNEL", { "grid", "gridX" }, { "block", "blockX" },
    { "graph_node", "graphNodeId" } },
  { "copies", "MEMCPY", { "kind", "copyKind" }, { "bytes", "bytes" } },
  { "fills", "MEMSET", { "bytes", "bytes" } },
  { "calls", "RUNTIME", { "result", "returnValue" } },
}

-- Where a name may be, the shortest first, and the tables of texts: nsys, nvprof.
local NAMES = { "shortName", "demangledName", "mangledName", "nameId", "name" }
local STRINGS = { { "StringIds", "id" }, { "StringTable", "_id_" } }

local COPY_KINDS = "case %s when 1 then 'host to device' when 2 then 'device to host'"
  .. " when 8 then 'device to device' when 10 then 'peer to peer' else 'kind ' || %s end"

local function columns_of(db, name)
  local columns = {}
  for row in db:rows("select name from pragma_table_info(?)", name) do
    columns[row.name] = true
  end
  return columns
end

-- A name is a text, or the number of one.
local function name_of(db, columns)
  local found
  for _, name in ipairs(NAMES) do found = found or columns[name] and name end
  if not found then return "'?'" end
  for _, strings in ipairs(STRINGS) do
    if columns_of(db, strings[1]).value then
      return ("coalesce((select value from %s s where s.%s = t.%s), t.%s)"):format(
        strings[1], strings[2], found, found)
    end
  end
  return "t." .. found
end

local function column_or_null(columns, name)
  return columns[name] and "t." .. sqlite.quote_identifier(name) or "null"
end

local function process_of(columns)
  if columns.globalPid then return "t.globalPid >> 24 & 0xffffff" end
  return columns.globalTid and "t.globalTid >> 24 & 0xffffff" or "null"
end

local function thread_of(columns)
  return columns.globalTid and "t.globalTid & 0xffffff" or "null"
end

local function common(columns)
  return ([[t.start as start, t."end" as "end", (t."end" - t.start) / 1000.0 as us,
    %s as device, %s as stream, %s as correlation, %s as process, %s as thread]]):format(
    column_or_null(columns, "deviceId"), column_or_null(columns, "streamId"),
    column_or_null(columns, "correlationId"), process_of(columns), thread_of(columns))
end

local function create(db, name, body)
  assert(db:exec(("create temp view %s as %s"):format(name, body)))
end

local function create_view(db, row)
  local source = PREFIX .. row[2]
  local columns = columns_of(db, source)
  if not (columns.start and columns["end"]) then
    source, columns = "(select 0 as start, 0 as \"end\" where 0)", {}
  end
  local parts = { name_of(db, columns) .. " as name", common(columns) }
  for i = 3, #row do
    local expression = column_or_null(columns, row[i][2])
    if row[i][1] == "kind" and columns.copyKind then
      expression = COPY_KINDS:format(expression, expression)
    end
    parts[#parts + 1] = expression .. " as " .. row[i][1]
  end
  create(db, row[1], ("select %s from %s t"):format(table.concat(parts, ", "), source))
end

-- 59 and 60 are ranges; older exports do not say.
local function create_ranges(db)
  local columns = columns_of(db, "NVTX_EVENTS")
  if not (columns.start and columns["end"]) then
    create(db, "ranges", [[select null as name, 0 as start, 0 as "end", 0.0 as us,
      null as process, null as thread where 0]])
    return
  end
  local text = columns.text and "t.text" or "null"
  if columns.textId and columns_of(db, "StringIds").value then
    text = ("coalesce(%s, (select value from StringIds s where s.id = t.textId))")
      :format(text)
  end
  create(db, "ranges", ([[select %s as name, t.start as start, t."end" as "end",
    (t."end" - t.start) / 1000.0 as us, %s as process, %s as thread
    from NVTX_EVENTS t where t."end" is not null %s]]):format(text, process_of(columns),
    thread_of(columns), columns.eventType and "and t.eventType in (59, 60)" or ""))
end

local function prepare(db)
  for _, row in ipairs(VIEWS) do create_view(db, row) end
  create_ranges(db)
end

-- One file, of one or more.
local function join(paths)
  if #paths == 1 then return paths[1] end
  local path = os.tmpname()
  os.remove(path)
  local merged, message, code = trace.merge(path, paths)
  if merged then return path, true end
  os.remove(path)
  return nil, message, code
end

local function open(path, mode)
  if lfs.attributes(path, "mode") ~= "file" then
    return nil, ("'%s' is not a file"):format(path), "ENOENT"
  end
  local db, message, code = sqlite.open(path, { mode = mode })
  if not db then return nil, message, code end
  local ok, failure = pcall(prepare, db)
  if ok then return db end
  db:close()
  return nil, ("%s: %s"):format(path, failure), tostring(failure):match("SQLITE_%u+")
end

---Opens a trace, or several as one.
---@param paths string|string[]
---@param mode? "ro"|"rw" default "ro"
---@return sqlite.database? db
---@return string? message
---@return string? code
function trace_file.open(paths, mode)
  if type(paths) == "string" then paths = { paths } end
  local path, is_temporary, code = join(paths)
  if not path then return nil, is_temporary, code end
  local db, message, why = open(path, mode or "ro")
  if is_temporary == true then os.remove(path) end -- it lives as long as it is open
  return db, message, why
end

return trace_file
