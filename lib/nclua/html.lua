--- HTML: text that cannot break out, tables that can be sorted, and the page around them.
local html = {}

local embedded = require("nclua.embedded")

local ENTITIES = { ["&"] = "&amp;", ["<"] = "&lt;", [">"] = "&gt;", ['"'] = "&quot;" }

---@param value any
---@return string
function html.escape(value)
  return (tostring(value):gsub('[&<>"]', ENTITIES))
end

-- Five digits are more than any of these measurements has; integers stay whole.
local function number(value)
  if math.type(value) == "integer" then return ("%d"):format(value) end
  if value ~= value then return "" end
  if math.abs(value) >= 99999.5 then return ("%.0f"):format(value) end
  return ("%.5g"):format(value)
end

local function cell(value)
  if value == nil then return "<td></td>" end
  if type(value) ~= "number" then return "<td>" .. html.escape(value) .. "</td>" end
  return ('<td class="n" data-value="%s">%s</td>'):format(value, number(value))
end

-- A row may carry a class: it is how a verdict is coloured, never how it is told.
local function row_of(columns, row)
  local cells = {}
  for c = 1, #columns do cells[c] = cell(row[c]) end
  local class = row.class and (' class="%s"'):format(row.class) or ""
  return ("<tr%s>%s</tr>"):format(class, table.concat(cells))
end

---A table of finished cells.
---@param caption string
---@param headings string[] th elements
---@param lines string[] tr elements
---@return string
function html.raw_table(caption, headings, lines)
  caption = html.escape(caption)
  return table.concat({
    '<div class="scroll" tabindex="0" role="region" aria-label="', caption,
    '"><table>\n<caption>', caption, "</caption><thead><tr>", table.concat(headings),
    "</tr></thead>\n<tbody>\n", table.concat(lines, "\n"), "\n</tbody></table></div>\n",
  })
end

---A table whose columns a script of the page makes sortable.
---@param caption string
---@param columns string[]
---@param rows any[][] cells in the columns' order; `row.class` is a class of the row
---@return string
function html.table(caption, columns, rows)
  local headings, lines = {}, {}
  for c, column in ipairs(columns) do
    local class = rows[1] and type(rows[1][c]) == "number" and ' class="n"' or ""
    headings[c] = ('<th scope="col"%s>%s</th>'):format(class, html.escape(column))
  end
  for r, row in ipairs(rows) do lines[r] = row_of(columns, row) end
  return html.raw_table(caption, headings, lines)
end

---@param items string[]
---@return string
function html.list(items)
  local lines = {}
  for i, item in ipairs(items) do lines[i] = "<li>" .. html.escape(item) .. "</li>" end
  return "<ul>\n" .. table.concat(lines, "\n") .. "\n</ul>\n"
end

---The whole page: one file that needs nothing else.
---@param title string
---@param body string HTML
---@param scripts? string script elements that come last
---@return string
function html.page(title, body, scripts)
  local values = { TITLE = html.escape(title), BODY = body, SCRIPTS = scripts or "" }
  return (assert(embedded.source("page:document")):gsub("<!%-%-(%u+)%-%->", values))
end

return html
