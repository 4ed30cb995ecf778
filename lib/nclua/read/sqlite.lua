--- SQLite files: Nsight Systems exports, nvprof's, nclua's own traces and results.
local document = require("nclua.read.document")
local lfs = require("lfs")
local nsys = require("nclua.parse.nsys")

local sqlite = {}

-- SQLite wants a file: what comes compressed or from standard input goes into one first.
local function spool(source)
  local path = os.tmpname()
  local file, message = io.open(path, "wb")
  if not file then return nil, message end
  while true do
    local piece, why = source.next()
    local ok, failure = piece, why
    if piece and piece ~= "" then ok, failure = file:write(piece) end
    if not ok or piece == "" then
      file:close()
      if piece == "" then return path end
      os.remove(path)
      return nil, failure
    end
  end
end

-- Is the file itself a database, not a compressed one?
local function is_plain(path)
  if path == "-" or lfs.attributes(path, "mode") ~= "file" then return false end
  local file <close> = io.open(path, "rb")
  return file ~= nil and file:read(16) == "SQLite format 3\0"
end

local RESULTS = "select section, world_size, case_name, metric, count(*) as samples,"
  .. " median(value) as median, min(correct) as correct from measurement where"
  .. " typeof(value) in ('integer', 'real') group by 1, 2, 3, 4 order by 1, 2, 3, 4"

-- A run's results.db, as chapters write it.
local function fill_results(doc, trace)
  doc.kind = "nclua results"
  local run = trace.database:row("select * from run") or {}
  for _, name in ipairs({ "run_id", "chapter", "started_utc", "backend" }) do
    doc:fact(name, run[name])
  end
  local rows = {}
  for row in trace.database:rows(RESULTS) do rows[#rows + 1] = row end
  doc:table("measurements", { "section", "world_size", "case_name", "metric", "samples",
    "median", "correct" }, rows)
end

local function fill(doc, trace)
  if trace.tables.measurement and trace.tables.run then return fill_results(doc, trace) end
  doc:fact("kernel names from", trace.name_column)
  local ids = {}
  for id in pairs(trace.devices) do ids[#ids + 1] = id end
  table.sort(ids)
  for _, id in ipairs(ids) do doc:fact("GPU " .. id, trace.devices[id]) end
  if not trace.has_kernels then doc:problem("no table of kernels with start and end") end
  local tables = {}
  for name in pairs(trace.tables) do tables[#tables + 1] = { table = name } end
  table.sort(tables, function(a, b) return a.table < b.table end)
  doc:table("kernels", { "name", "grid_x", "block_x", "count", "total_us", "median_us",
    "min_us", "max_us" }, trace:summary())
  doc:table("tables", { "table" }, tables)
end

local function read_trace(path)
  local trace <close>, message = nsys.open(path)
  if not trace then return nil, message end
  local doc = document.new("trace")
  local ok, why = pcall(fill, doc, trace)
  if not ok then doc:problem(tostring(why)) end
  return doc
end

---@param source table
---@return nclua.read.document? document
---@return string? message
function sqlite.read(source)
  if is_plain(source.path) then return read_trace(source.path) end
  local path, why = spool(source)
  if not path then return nil, why end
  local doc, message = read_trace(path)
  os.remove(path)
  return doc, message
end

return sqlite
