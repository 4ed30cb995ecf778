--- One file that holds a folder: an SQLite archive (the `sqlar` table that the sqlite3
--- program reads with -A) and a checksum of every file. What comes out of one from somebody
--- else is checked before a byte is written.
local archive = {}

local files = require("nclua.files")
local gzip = require("nclua.gzip")
local hash = require("nclua.hash")
local lfs = require("lfs")
local sqlite = require("nclua.sqlite")

--- Beside the files of an unpacked archive, as sha256sum writes it.
archive.CHECKSUMS = "checksums.sha256"

local FORMAT = 1
local SCHEMA = [[
create table sqlar (name text primary key, mode int, mtime int, sz int, data blob);
create table checksum (name text primary key, sha256 text not null);
create table pack (key text primary key, value text);
]]
local REGULAR_FILE, KIND_MASK, PERMISSIONS = 0x8000, 0xf000, 0x1a4 -- 0644
local MOST_BYTES = 1 << 30 -- of one file

---@class archive.file
---@field path string with "/" and no dots
---@field text string
---@field mtime? integer seconds since 1970

local function insert(db, list)
  for _, file in ipairs(list) do
    local packed = gzip.deflate(file.text)
    local data = #packed < #file.text and packed or file.text
    db:insert("sqlar", { { name = file.path, mode = REGULAR_FILE | PERMISSIONS,
      mtime = file.mtime or 0, sz = #file.text, data = sqlite.blob(data) } })
    db:insert("checksum", { { name = file.path, sha256 = hash.sha256(file.text) } })
  end
end

---@param path string must not exist
---@param list archive.file[]
---@return boolean? ok
---@return string? message
---@return string? code
function archive.write(path, list)
  if files.exists(path) then return nil, path .. " exists", "EEXIST" end
  local temporary = files.temporary(path)
  do
    local db <close>, message, code = sqlite.open(temporary, { mode = "rw" })
    if not db then return nil, message, code end
    assert(db:exec(SCHEMA))
    db:transaction(function()
      insert(db, list)
      db:insert("pack", { { key = "format", value = tostring(FORMAT) } })
    end)
  end
  return files.rename(temporary, path)
end

---May a file of this name be written below a folder?
---@param name any
---@return string? message what is wrong with it
function archive.refuse_name(name)
  if type(name) ~= "string" or name == "" or #name > 1000 then return "not a file name" end
  if name:find("[%c\\]") then return "a control character or backslash in it" end
  if name:find("^/") then return "it is absolute" end
  for part in (name .. "/"):gmatch("([^/]*)/") do
    if part == "" or part == "." or part == ".." then return "it leaves its folder" end
  end
end

local function check_row(row)
  local wrong = archive.refuse_name(row.name)
  if wrong then return wrong end
  if math.type(row.mode) ~= "integer" or row.mode & KIND_MASK ~= REGULAR_FILE then
    return "not a regular file"
  end
  local is_size = math.type(row.sz) == "integer" and row.sz >= 0 and row.sz <= MOST_BYTES
  if not is_size then return "not a size" end
  if type(row.data) ~= "string" and row.sz > 0 then return "no data" end
end

local function text_of(row)
  local data = row.data or ""
  if #data == row.sz then return data end
  return gzip.inflate(data, row.sz)
end

-- A view or a trigger in the place of a table is somebody's trick.
local function check_schema(db)
  for _, name in ipairs({ "sqlar", "checksum", "pack" }) do
    local row = db:row("select type from sqlite_master where name = ?", name)
    if not row or row.type ~= "table" then return nil, "not a packed run" end
  end
  local row = db:row("select value from pack where key = 'format'")
  if not row or row.value ~= tostring(FORMAT) then
    return nil, ("format %s is not known"):format(row and row.value or "?")
  end
  return true
end

local function read_all(db)
  local ok, why = check_schema(db)
  if not ok then return nil, { why } end
  local list, problems, sums, seen = {}, {}, {}, {}
  for row in db:rows("select name, sha256 from checksum") do sums[row.name] = row.sha256 end
  for row in db:rows("select name, mode, mtime, sz, data from sqlar order by name") do
    local wrong = check_row(row) or seen[row.name] and "it is there twice"
    local text, damage
    if not wrong then text, damage = text_of(row) end
    wrong = wrong or damage
    if not wrong and sums[row.name] ~= hash.sha256(text) then
      wrong = sums[row.name] and "its content was changed" or "it has no checksum"
    end
    if wrong then problems[#problems + 1] = ("%q: %s"):format(tostring(row.name), wrong) end
    if type(row.name) == "string" then seen[row.name], sums[row.name] = true, nil end
    list[#list + 1] = { path = row.name, text = text, mtime = row.mtime }
  end
  for name in pairs(sums) do
    problems[#problems + 1] = ("%q: it is missing"):format(tostring(name))
  end
  table.sort(problems)
  if #problems > 0 then return nil, problems end
  return list
end

---Reads a whole archive and checks names, kinds, sizes and checksums.
---@param path string
---@return archive.file[]? files
---@return string[]? problems each names the file
function archive.read(path)
  local db <close>, message = sqlite.open(path, { mode = "ro" })
  if not db then return nil, { message } end
  local ok, list, problems = pcall(read_all, db) -- SQLite raises at a damaged page
  if not ok then return nil, { ("%s: %s"):format(path, list) } end
  return list, problems
end

local function checksums(list)
  local lines = {}
  for i, file in ipairs(list) do
    lines[i] = ("%s  %s\n"):format(hash.sha256(file.text), file.path)
  end
  return table.concat(lines)
end

---Removes a folder and all below it; links are removed, not followed.
---@param path string
function archive.remove(path)
  if lfs.symlinkattributes(path, "mode") ~= "directory" then
    os.remove(path)
    return
  end
  for name in lfs.dir(path) do
    if name ~= "." and name ~= ".." then archive.remove(path .. "/" .. name) end
  end
  lfs.rmdir(path)
end

local function write_all(folder, list)
  for _, file in ipairs(list) do
    local path = folder .. "/" .. file.path
    local ok, message = files.make_folder(files.folder(path))
    if ok then ok, message = files.write(path, file.text) end
    if not ok then return nil, message end
  end
  return files.write(folder .. "/" .. archive.CHECKSUMS, checksums(list))
end

---Unpacks into a folder that must not exist; if anything is wrong, there is none.
---@param path string
---@param folder string
---@return integer? count of files
---@return string[]? problems
function archive.extract(path, folder)
  if lfs.symlinkattributes(folder, "mode") then return nil, { folder .. " exists" } end
  local list, problems = archive.read(path)
  if not list then return nil, problems end
  local temporary = files.temporary(folder)
  local ok, message = lfs.mkdir(temporary)
  if ok then ok, message = write_all(temporary, list) end
  if ok then ok, message = os.rename(temporary, folder) end
  if ok then return #list end
  archive.remove(temporary)
  return nil, { ("%s: %s"):format(folder, message) }
end

return archive
