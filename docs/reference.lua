--- Writes the reference pages from the annotations of the stubs and of the library:
---
---   build/nclua docs/reference.lua [FOLDER]    default: docs/reference
---
--- FOLDER/generated/NAME.md is a module, FOLDER/README.md the list of all.
local files = require("nclua.files")
local help = require("nclua.help")
local lfs = require("lfs")

-- Of lib/nclua, what a script may build on; the rest serves commands and chapters.
local PUBLIC = {
  "back_to_back", "calibrate", "capture", "chapter", "combination", "comparison",
  "contest", "cost_model", "critical_path", "csv", "decisions", "environment", "explain",
  "files", "html", "measure", "options", "override", "parse.nccl_log", "parse.nccl_tests",
  "parse.nsys", "parse.smi", "parse.topology", "parse.watchdog", "past_run", "payload",
  "presets", "profile", "ranks", "read", "reenact", "report", "report_page", "results",
  "run", "section", "size", "steering", "sweep", "text_table", "timeline", "trace_file",
  "tune.proof", "tune.rules", "winners", "worlds",
}

-- Markdown would take these for its own, where they are not in `code`.
local function escape(text)
  return (text:gsub("([^`]*)(`?[^`]*`?)", function(plain, quoted)
    return plain:gsub("<", "&lt;"):gsub("[*%[%]]", "\\%0") .. quoted
  end))
end

local PAIRS = { ["("] = 1, ["{"] = 1, ["<"] = 1, ["["] = 1, [")"] = -1, ["}"] = -1,
  [">"] = -1, ["]"] = -1 }

-- A blank ends a type outside all brackets, unless it stands beside a "|" or behind the ":"
-- or "," of a function's results.
local function ends_type(text, i, depth)
  return depth == 0 and text:find("^ ", i) and not text:find("^%s*|", i)
    and not text:sub(1, i - 1):find("[|:,]$")
end

local function type_end(text)
  local depth, is_quoted = 0, false
  for i = 1, #text do
    local c = text:sub(i, i)
    is_quoted = is_quoted ~= (c == '"')
    if not is_quoted then
      depth = depth + (PAIRS[c] or 0)
      if ends_type(text, i, depth) then return i - 1 end
    end
  end
  return #text
end

local function split_type(text)
  local last = type_end(text)
  return text:sub(1, last), (text:sub(last + 1):gsub("^%s+", ""))
end

local function code(text)
  return "`" .. text .. "`"
end

-- A parameter or field: name, type, words. A name may be an index: [string].
local function named(note)
  local name, rest = note:match("^(%b[])%s+(.*)$")
  if not name then name, rest = note:match("^(%S+)%s*(.*)$") end
  local kind, words = split_type(rest)
  words = words ~= "" and ", " .. escape(words) or ""
  return ("%s: %s%s"):format(code(name), code(kind), words)
end

local function returned(note)
  local kind, words = split_type(note)
  return code(kind) .. (words ~= "" and " " .. escape(words) or "")
end

local MADE = "<!-- Made by docs/reference.lua%s. Do not edit: run "
  .. "build/nclua docs/reference.lua -->"

local Page = {}
Page.__index = Page

function Page:add(...)
  for _, line in ipairs({ ... }) do self[#self + 1] = line end
end

function Page:list(title, notes, format)
  if #notes == 0 then return end
  self:add("", title, "")
  for _, note in ipairs(notes) do self:add("- " .. format(note)) end
end

function Page:text(lines)
  if #lines == 0 then return end
  self:add("")
  for _, line in ipairs(lines) do self:add(escape(line)) end
end

function Page:members(entry)
  for _, member in ipairs(entry.members) do
    self:add("", "### " .. code(member.usage))
    self:text(member.text)
    self:list("Takes", member.params, named)
    self:list("Returns", member.returns, returned)
  end
end

function Page:entry(entry)
  if entry.kind == "alias" then
    local meaning, words = split_type(entry.usage)
    words = words ~= "" and ", " .. escape(words) or ""
    self:add("", "## Type " .. code(entry.name), "", code(meaning) .. words)
  elseif entry.kind == "type" then
    self:add("", "## Type " .. code(entry.name))
    if entry.parent then self:add("", "Extends " .. code(entry.parent) .. ".") end
    self:text(entry.text)
    self:list("Fields", entry.fields, named)
    self:members(entry)
  end
end

local function module_of(entries)
  for _, entry in ipairs(entries) do
    if entry.kind == "module" then return entry end
  end
end

local function page_of(module)
  local entries = help.read(module.name, module.source)
  local own, page = module_of(entries), setmetatable({}, Page)
  assert(own, module.path .. " declares no module")
  page:add("# " .. module.name, "", MADE:format(" from " .. module.path))
  page:text(own.text)
  page:add("")
  if module.guide then
    page:add(("In words, with examples: [%s](../%s)."):format(module.guide, module.guide))
  end
  page:add(("Source of this page: [%s](../../../%s)."):format(module.path, module.path))
  if #own.members > 0 then page:add("", "## Functions") end
  page:members(own)
  for _, entry in ipairs(entries) do page:entry(entry) end
  return table.concat(page, "\n") .. "\n", table.concat(own.text, " ")
end

local function new_module(short, path)
  local guide = short .. ".md"
  return { short = short, name = "nclua." .. short, path = path,
    source = assert(files.read(path)),
    guide = files.exists("docs/reference/" .. guide) and guide or nil }
end

local function modules()
  local list = {}
  for file in lfs.dir("lib/meta") do
    local short = file:match("^([%w_]+)%.lua$")
    if short then list[#list + 1] = new_module(short, "lib/meta/" .. file) end
  end
  for _, short in ipairs(PUBLIC) do
    list[#list + 1] = new_module(short, "lib/nclua/" .. short:gsub("%.", "/") .. ".lua")
  end
  table.sort(list, function(a, b) return a.short < b.short end)
  return list
end

local function first_sentence(text)
  local first = (text:match("^(.-)%.%s") or text):gsub("[.:]$", "")
  return (escape(first):gsub("|", "\\|"))
end

local ROW = "| [%s](generated/%s.md) | %s | %s |"

local function index_of(rows)
  local lines = { "# The modules", "", MADE:format(""), "",
    "Every function, type and field, from the annotations; *in words* says what a module",
    "is for. `:help NAME` at the prompt shows the same.", "", "| module | | |",
    "|---|---|---|" }
  for _, row in ipairs(rows) do
    local module = row.module
    local guide = module.guide and ("[in words](%s)"):format(module.guide) or ""
    lines[#lines + 1] = ROW:format(module.name, module.short, row.says, guide)
  end
  lines[#lines + 1] = "\nOther pages: "
  return table.concat(lines, "\n")
end

-- Pages that belong to no module: parts of others, programs, modules of third parties.
local function other_pages(rows)
  local of_module, names, links = {}, {}, {}
  for _, row in ipairs(rows) do of_module[row.module.guide or ""] = true end
  for name in lfs.dir("docs/reference") do
    if name:find("%.md$") and name ~= "README.md" and not of_module[name] then
      names[#names + 1] = name
    end
  end
  table.sort(names)
  for i, name in ipairs(names) do
    links[i] = ("[%s](%s)"):format(name:gsub("%.md$", ""), name)
  end
  return table.concat(links, ", ") .. ".\n"
end

local function main(folder)
  local rows = {}
  assert(files.make_folder(folder .. "/generated"))
  for i, module in ipairs(modules()) do
    local page, says = page_of(module)
    rows[i] = { module = module, says = first_sentence(says) }
    assert(files.write(("%s/generated/%s.md"):format(folder, module.short), page))
  end
  assert(files.write(folder .. "/README.md", index_of(rows) .. other_pages(rows)))
end

main(arg[1] or "docs/reference")
