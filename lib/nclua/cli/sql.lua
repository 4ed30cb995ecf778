--- nclua sql FILE [SQL...]: questions to a trace or any other SQLite file.
local cjson = require("cjson")
local command = require("nclua.command")
local csv = require("nclua.csv")
local text_table = require("nclua.text_table")
local trace_file = require("nclua.trace_file")

local options = command.options("nclua sql",
  "Runs SQL on an SQLite file: a trace, an Nsight Systems export, results.db. Without SQL"
  .. " it lists the tables. Aggregates besides SQLite's: median, percentile, stdev, cv. A"
  .. " trace has the views kernels, copies, fills, calls, ranges, with names written out."
  .. " Several traces are one with --with. Exit status: 0, 1 if the SQL failed, 2 wrong"
  .. " usage.",
  {
    { "arguments", "", "FILE, then any number of SQL statements; - reads them from stdin",
      positional = "+" },
    { "with", "", "more traces, comma-separated", kind = "list" },
    { "csv", false, "print CSV" },
    { "json", false, "print a JSON list of objects" },
    { "wide", false, "do not cut long cells" },
    { "write", false, "let the SQL change the file" },
  }, arg)

local MOST_WIDTH = 60

local function fail(message)
  io.stderr:write("nclua sql: ", message, "\n")
  os.exit(1, true)
end

local function rows_of(statement)
  local rows = {}
  for row in statement:rows() do rows[#rows + 1] = row end
  return rows
end

-- An empty list and a NULL are not cjson's business.
local function print_json(columns, rows)
  local lines = {}
  for r, row in ipairs(rows) do
    local object = {}
    for _, column in ipairs(columns) do
      local value = row[column]
      object[#object + 1] = cjson.encode(column) .. ":"
        .. (value == nil and "null" or cjson.encode(value))
    end
    lines[r] = "{" .. table.concat(object, ",") .. "}"
  end
  print("[" .. table.concat(lines, ",\n") .. "]")
end

local function print_rows(columns, rows)
  if options.json then return print_json(columns, rows) end
  if options.csv then return io.stdout:write(csv.encode(columns, rows)) end
  local cells = {}
  for r, row in ipairs(rows) do
    cells[r] = {}
    for c, column in ipairs(columns) do cells[r][c] = row[column] end
  end
  io.stdout:write(text_table.format(columns, cells,
    { most_width = options.wide and math.maxinteger or MOST_WIDTH }))
end

local function run(db, sql)
  local statement <close> = assert(db:prepare(sql))
  if #statement.columns == 0 then
    statement:run()
    return
  end
  print_rows(statement.columns, rows_of(statement))
end

local function list_tables(db)
  local rows = {}
  for row in db:rows([[select name, type from sqlite_master where type in ('table', 'view')
      union all select name, 'view of nclua' from temp.sqlite_master order by 2, 1]]) do
    rows[#rows + 1] = { name = row.name, type = row.type, rows = db:value(
      ('select count(*) from "%s"'):format(row.name:gsub('"', '""'))) }
  end
  print_rows({ "name", "type", "rows" }, rows)
end

local function statements()
  local list = table.move(options.arguments, 2, #options.arguments, 1, {})
  for i, sql in ipairs(list) do
    if sql == "-" then list[i] = io.read("a") end
  end
  return list
end

local function main()
  local paths = { options.arguments[1], table.unpack(options.with) }
  local db <close>, message = trace_file.open(paths, options.write and "rw" or "ro")
  if not db then fail(message) end
  local list = statements()
  if #list == 0 then list_tables(db) end
  for _, sql in ipairs(list) do run(db, sql) end
end

local ok, message = pcall(main)
if not ok then fail((tostring(message):gsub("^[^\n]-:%d+: ", ""))) end
