--- Documents as people and programs want them: text, JSON, CSV, SQLite.
local csv = require("nclua.csv")
local sqlite = require("nclua.sqlite")

local output = {}

local MOST_ROWS, MOST_WIDTH = 25, 48

-- People need no 17 digits; JSON, CSV and SQLite keep them.
local function text_of(value)
  if value == nil then return "" end
  local text = math.type(value) == "float" and ("%.7g"):format(value) or tostring(value)
  return (text:gsub("%c", " "))
end

-- Cells as text, and how wide each column is.
local function cells_of(data, most)
  local lines, widths = {}, {}
  local headings = {}
  for c, column in ipairs(data.columns) do
    headings[c] = text_of(column)
    widths[c] = #headings[c]
  end
  for r = 1, math.min(most, #data.rows) do
    local cells = {}
    for c, column in ipairs(data.columns) do
      local text = text_of(data.rows[r][column])
      if #text > MOST_WIDTH then text = text:sub(1, MOST_WIDTH - 3) .. "..." end
      cells[c] = text
      widths[c] = math.max(widths[c], #text)
    end
    lines[r] = cells
  end
  return lines, widths, headings
end

-- Columns that no shown row fills are left out.
local function shown_columns(data, lines)
  local shown = {}
  for c in ipairs(data.columns) do
    for _, cells in ipairs(lines) do
      if cells[c] ~= "" then
        shown[#shown + 1] = c
        break
      end
    end
  end
  return shown
end

local function is_number(data, column)
  for _, row in ipairs(data.rows) do
    local value = row[column]
    if value ~= nil and type(value) ~= "number" then return false end
  end
  return true
end

local function print_table(data, write, most)
  local lines, widths, headings = cells_of(data, most)
  local shown = shown_columns(data, lines)
  local function print_line(cells)
    local parts = {}
    for _, c in ipairs(shown) do
      local blank = (" "):rep(widths[c] - #cells[c])
      local is_right = is_number(data, data.columns[c])
      parts[#parts + 1] = is_right and blank .. cells[c] or cells[c] .. blank
    end
    write("  ", (table.concat(parts, "  "):gsub("%s+$", "")), "\n")
  end
  write("\n", data.name, ":\n")
  print_line(headings)
  for _, cells in ipairs(lines) do print_line(cells) end
  local left = #data.rows - #lines
  if left > 0 then write(("  ... %d more (--all)\n"):format(left)) end
end

--- For people.
---@param doc nclua.read.document
---@param write fun(...: string)
---@param is_all boolean? all rows, not the first 25 of a table
function output.text(doc, write, is_all)
  write(doc.path, ": ", doc.kind, "\n")
  for _, fact in ipairs(doc.facts) do
    write(("  %-16s %s\n"):format(fact[1], text_of(fact[2])))
  end
  for _, data in ipairs(doc.tables) do
    print_table(data, write, is_all and #data.rows or MOST_ROWS)
  end
  if doc.problem_count == 0 then return end
  write(("\nnot understood: %d\n"):format(doc.problem_count))
  local most = is_all and #doc.problems or math.min(10, #doc.problems)
  for i = 1, most do
    local problem = doc.problems[i]
    write(("  %s%s%s\n"):format(problem.line and ("line %d: "):format(problem.line) or "",
      problem.why, problem.text and (": %s"):format(text_of(problem.text)) or ""))
  end
  local left = doc.problem_count - most
  if left > 0 then write(("  ... %d more\n"):format(left)) end
end

local ESCAPES = { ['"'] = '\\"', ["\\"] = "\\\\", ["\n"] = "\\n", ["\r"] = "\\r",
  ["\t"] = "\\t" }

-- Logs hold any bytes: what is no UTF-8 becomes the replacement character.
local function json_string(text)
  if not utf8.len(text) then text = text:gsub("[\x80-\xff]", "\xef\xbf\xbd") end
  return '"' .. text:gsub('[%c"\\\x7f]', function(c)
    return ESCAPES[c] or ("\\u%04x"):format(c:byte())
  end) .. '"'
end

local function json_value(value)
  if value == nil or value ~= value then return "null" end
  if type(value) == "number" then
    return (value == math.huge or value == -math.huge) and "null" or csv.number(value)
  end
  return type(value) == "boolean" and tostring(value) or json_string(tostring(value))
end

local function json_row(columns, row)
  local parts = {}
  for _, column in ipairs(columns) do
    if row[column] ~= nil then
      parts[#parts + 1] = json_string(column) .. ":" .. json_value(row[column])
    end
  end
  return "{" .. table.concat(parts, ",") .. "}"
end

-- [ROW, ROW]: a row at a time, for there may be many.
local function write_rows(write, columns, rows)
  write("[")
  for i, row in ipairs(rows) do write(i > 1 and ",\n" or "", json_row(columns, row)) end
  write("]")
end

--- One JSON object: path, kind, facts, tables (lists of objects), problems.
---@param doc nclua.read.document
---@param write fun(...: string)
function output.write_json(doc, write)
  write('{"path":', json_string(doc.path), ',"kind":', json_string(doc.kind), ',"facts":{')
  for i, fact in ipairs(doc.facts) do
    write(i > 1 and "," or "", json_string(fact[1]), ":", json_value(fact[2]))
  end
  write('},\n"tables":{')
  for i, data in ipairs(doc.tables) do
    write(i > 1 and ",\n" or "", json_string(data.name), ":")
    write_rows(write, data.columns, data.rows)
  end
  write('},\n"problem_count":', csv.number(doc.problem_count), ',"problems":')
  write_rows(write, { "line", "why", "text" }, doc.problems)
  write("}")
end

--- The same as a text.
---@param doc nclua.read.document
---@return string
function output.json(doc)
  local pieces = {}
  output.write_json(doc, function(...)
    for i = 1, select("#", ...) do pieces[#pieces + 1] = (select(i, ...)) end
  end)
  return table.concat(pieces)
end

--- The tables of one name of all documents, as CSV; the first document's first table if no
--- name is given.
---@param docs nclua.read.document[]
---@param name string?
---@return string? text
---@return string? message
function output.csv(docs, name)
  local columns, rows, seen = { "file" }, {}, {}
  for _, doc in ipairs(docs) do
    for _, data in ipairs(doc.tables) do
      name = name or data.name
      if data.name == name then
        for _, column in ipairs(data.columns) do
          if not seen[column] then columns[#columns + 1] = column end
          seen[column] = true
        end
        for _, row in ipairs(data.rows) do
          local copy = { file = doc.path }
          for _, column in ipairs(data.columns) do copy[column] = row[column] end
          rows[#rows + 1] = copy
        end
      end
    end
  end
  if #rows == 0 then return nil, ("no table '%s'"):format(name or "") end
  return csv.encode(columns, rows)
end

-- A table grows columns when a later file has more of them.
local function prepare(db, name, columns)
  local quoted = sqlite.quote_identifier(name)
  db:exec(("create table if not exists %s (file text)"):format(quoted))
  local known = {}
  for row in db:rows(("pragma table_info(%s)"):format(quoted)) do
    known[row.name:lower()] = true
  end
  for _, column in ipairs(columns) do
    if not known[column:lower()] then
      known[column:lower()] = true
      db:exec(("alter table %s add column %s"):format(quoted,
        sqlite.quote_identifier(column)))
    end
  end
end

local function insert(db, name, columns, rows, path)
  prepare(db, name, columns)
  local all = table.move(columns, 1, #columns, 2, { "file" })
  local values = {}
  for i, row in ipairs(rows) do
    local list = { path }
    for c, column in ipairs(columns) do
      local value = row[column]
      local is_plain = type(value) == "number" or type(value) == "boolean"
      list[c + 1] = (value ~= nil and not is_plain) and tostring(value) or value
    end
    values[i] = list
    for c = 1, #all do
      if list[c] == nil then list[c] = sqlite.null end
    end
  end
  db:insert(name, values, all)
end

-- What an earlier reading of the same file left.
local function forget(db, path)
  local names = {}
  for row in db:rows("select name from sqlite_master where type = 'table' and"
    .. " name glob 'read_*'") do
    names[#names + 1] = row.name
  end
  for _, name in ipairs(names) do
    db:exec(("delete from %s where file = ?"):format(sqlite.quote_identifier(name)), path)
  end
end

--- Into a database: each table becomes read_NAME, with a column `file`; read_file lists the
--- files. Reading a file again replaces its rows.
---@param docs nclua.read.document[]
---@param path string
---@return boolean? ok
---@return string? message
function output.database(docs, path)
  local db <close>, message = sqlite.open(path)
  if not db then return nil, message end
  local ok, why = pcall(db.transaction, db, function()
    for _, doc in ipairs(docs) do
      forget(db, doc.path)
      insert(db, "read_file", { "kind", "problems" },
        { { kind = doc.kind, problems = doc.problem_count } }, doc.path)
      for _, data in ipairs(doc.tables) do
        insert(db, "read_" .. data.name, data.columns, data.rows, doc.path)
      end
    end
  end)
  if ok then return true end
  return nil, tostring(why)
end

return output
