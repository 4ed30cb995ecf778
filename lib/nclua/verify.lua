--- Is a run's folder what it was, and do its tables follow from its raw rows?
local verify = {}

local archive = require("nclua.archive")
local chapter = require("nclua.chapter")
local csv = require("nclua.csv")
local embedded = require("nclua.embedded")
local files = require("nclua.files")
local hash = require("nclua.hash")
local manifest = require("nclua.manifest")
local options = require("nclua.options")
local results = require("nclua.results")
local run = require("nclua.run")
local size = require("nclua.size")
local sqlite = require("nclua.sqlite")
local summary = require("nclua.summary")

---@class verify.outcome
---@field problems string[] each names the file
---@field notes string[] what could not be checked, and why
---@field files integer whose checksums were compared
---@field tables integer that were made again

local function compare(folder, path, sha256, out)
  local found = hash.sha256_file(folder .. "/" .. path)
  out.files = out.files + 1
  if found == sha256 then return end
  out.problems[#out.problems + 1] = ("%s: %s"):format(path,
    found and "its content was changed" or "it is missing")
end

-- What `nclua unpack` wrote: every file is listed.
local function check_list(folder, out)
  local text = files.read(folder .. "/" .. archive.CHECKSUMS)
  if not text then return false end
  local listed = { [archive.CHECKSUMS] = true }
  for sha256, path in text:gmatch("(%x+)  ([^\n]+)\n") do
    listed[path] = true
    compare(folder, path, sha256, out)
  end
  for _, path in ipairs(files.list(folder)) do
    if not listed[path] then
      out.problems[#out.problems + 1] = path .. ": it was added"
    end
  end
  return true
end

local function check_artifacts(folder, db, is_listed, out)
  for row in db:rows("select path, sha256 from artifact order by path") do
    if not is_listed then
      compare(folder, row.path, row.sha256, out)
    elseif hash.sha256_file(folder .. "/" .. row.path) ~= row.sha256 then
      local text = ("%s: not what %s says"):format(row.path, results.FILE)
      out.problems[#out.problems + 1] = text
    end
  end
end

---Where the text of a script lies in a packed run.
---@param path string as the manifest has it
---@return string
function verify.script_path(path)
  local parts = {}
  for part in path:gmatch("[^/]+") do
    if part ~= "." and part ~= ".." then parts[#parts + 1] = part end
  end
  return "scripts/" .. table.concat(parts, "/")
end

local function check_scripts(folder, values, out)
  for key, sha256 in pairs(values) do
    local path = key:match("^sha256%.(.*)$")
    local name = path and verify.script_path(path)
    if name and files.exists(folder .. "/" .. name) then
      compare(folder, name, sha256, out)
    end
  end
end

-- The binary's own chapter if it has the same text; else one that the user names.
local function load_chapter(name, script)
  local text, path = embedded.source("chapter:" .. name)
  if script then
    package.path = files.folder(script) .. "/?.lua;" .. package.path
    text, path = files.read(script), script
  end
  if not text then return nil, "no chapter " .. name end
  local chunk, message = load(text, "@" .. path, "t")
  if not chunk then return nil, message end
  return chapter.defined_by(chunk)
end

-- As it was typed, and what became of it: "auto (64 MiB)".
local function largest_of(text)
  local typed, became = text:match("^(%S+) %((.*)%)$")
  local short = became and became:gsub(" ?([KMG])iB$", "%1"):gsub(" ?B$", "")
  return typed, short and size.parse(short)
end

-- The values of the options, from their texts in results.db.
local function options_of(defined, db)
  local texts, args, words, largest = {}, {}, {}, nil
  for row in db:rows("select name, value from option") do texts[row.name] = row.value end
  for _, row in ipairs(defined.rows) do
    local text, flag = texts[row[1]], "--" .. row[1]:gsub("_", "-")
    if row[1] == "largest" and text then
      local typed, became = largest_of(text)
      text, largest = typed or text, became
    end
    if row.positional then
      for word in (text or ""):gmatch("%S+") do words[#words + 1] = word end
    elseif row[2] == false then
      args[#args + 1] = text == "true" and flag or nil
    elseif text and text ~= "" then
      args[#args + 1] = flag .. "=" .. text
    end
  end
  table.move(words, 1, #words, #args + 1, args)
  local parsed, message = options.parse(defined.name, "", defined.rows, args)
  if not parsed then return nil, message end
  if parsed.values.largest == "auto" then parsed.values.largest = largest end
  return parsed.values
end

local function facts_of(db)
  local facts = {}
  for row in db:rows("select name, value from fact") do
    facts[#facts + 1] = { row.name, row.value }
  end
  return facts
end

local function worlds_of(db)
  local worlds = {}
  for row in db:rows("select * from world") do worlds[#worlds + 1] = row end
  return worlds
end

-- A run whose tables are kept instead of written.
local function reopen(folder, defined, opt, db)
  local made = {}
  local about = db:row("select * from run")
  local again = run.reopen({ chapter = defined, folder = folder, opt = opt,
    facts = facts_of(db), worlds = worlds_of(db), id = about.run_id,
    backend = about.backend })
  function again.write_table(_, name, columns, rows)
    made[name] = csv.encode(columns, rows)
  end
  function again.write() end
  function again.capture(_, name)
    return files.read(folder .. "/artifacts/" .. name) or ""
  end
  return again, made
end

local function derive(again)
  local defined = again.chapter
  for _, section in ipairs(defined.sections) do again:derive(section) end
  if defined.conclude then defined.conclude(again, again.opt) end
  if #again.summary > 0 then
    again:write_table(defined.summary_file or "summary.csv", summary.COLUMNS, again.summary)
  end
end

local function first_difference(a, b)
  local number = 1
  for i = 1, math.min(#a, #b) do
    if a:byte(i) ~= b:byte(i) then return number end
    if a:byte(i) == 10 then number = number + 1 end
  end
  return number
end

local function compare_tables(folder, made, out)
  for name, text in pairs(made) do
    local there = files.read(folder .. "/" .. name)
    out.tables = out.tables + 1
    if not there then
      out.problems[#out.problems + 1] = name .. ": the table is missing"
    elseif there ~= text then
      local what = "%s: line %d is not what the raw rows give"
      out.problems[#out.problems + 1] = what:format(name, first_difference(there, text))
    end
  end
  for _, path in ipairs(files.list(folder)) do
    if path:find("^[^/]+%.csv$") and not made[path] then
      out.notes[#out.notes + 1] = path .. ": not made again"
    end
  end
end

-- Tables may differ because the chapter does: then that is what is wrong.
local function note_other_version(defined, values, out)
  for _, pair in ipairs(defined:scripts()) do
    local was = values[pair[1]]
    if was and was ~= pair[2] then
      local path = pair[1]:match("^sha256%.(.*)")
      out.notes[#out.notes + 1] = path .. ": this is another version"
    end
  end
end

local function check_tables(folder, db, values, script, out)
  local about = db:row("select chapter from run")
  local defined, message = load_chapter(about and about.chapter or "?", script)
  local opt
  if defined then opt, message = options_of(defined, db) end
  if not opt then
    local text = "no table was made again: %s (name it with --script)"
    out.problems[#out.problems + 1] = text:format(message)
    return
  end
  note_other_version(defined, values, out)
  local again, made = reopen(folder, defined, opt, db)
  local ok, why = pcall(derive, again)
  if not ok then
    out.problems[#out.problems + 1] = "the tables cannot be made again: " .. tostring(why)
  end
  compare_tables(folder, made, out)
  local differences, count = results.compare(again, db)
  table.move(differences, 1, #differences, #out.problems + 1, out.problems)
  out.tables = out.tables + count
end

---@param folder string a run's
---@param script? string the chapter's file, if this nclua does not have it. It is run: take
---one that you trust, or run in a sandbox
---@return verify.outcome
function verify.folder(folder, script)
  local out = { problems = {}, notes = {}, files = 0, tables = 0 }
  local values, message = manifest.read(folder)
  if not values then
    out.problems[1] = message
    return out
  end
  local is_listed = check_list(folder, out)
  check_scripts(folder, values, out)
  local db <close>, why = sqlite.open(folder .. "/" .. results.FILE, { mode = "ro" })
  if not db then
    out.problems[#out.problems + 1] = why
    return out
  end
  local ok, wrong = pcall(function()
    check_artifacts(folder, db, is_listed, out)
    check_tables(folder, db, values, script, out)
  end)
  if not ok then
    out.problems[#out.problems + 1] = ("%s: %s"):format(results.FILE, wrong)
  end
  return out
end

return verify
