--- nclua pack RUN_DIR [-o FILE] [--anonymize]: a run as one file.
local anonymous = require("nclua.anonymous")
local archive = require("nclua.archive")
local command = require("nclua.command")
local embedded = require("nclua.embedded")
local files = require("nclua.files")
local hash = require("nclua.hash")
local lfs = require("lfs")
local manifest = require("nclua.manifest")
local results = require("nclua.results")
local sqlite = require("nclua.sqlite")
local verify = require("nclua.verify")

local function fail(message)
  io.stderr:write("nclua pack: ", message, "\n")
  os.exit(1)
end

local function check(ok, message)
  if not ok then fail(message) end
  return ok
end

-- What the run's scripts were, by checksum: out of the binary, or from their place.
local function scripts(values, missing)
  local by_sum, list = {}, {}
  for _, name in ipairs(embedded.names()) do
    local text = embedded.source(name)
    by_sum[hash.sha256(text)] = text
  end
  for key, sha256 in pairs(values) do
    local path = key:match("^sha256%.(.*)$")
    local text = path and (by_sum[sha256] or files.read(path))
    if text and hash.sha256(text) == sha256 then
      list[#list + 1] = { path = verify.script_path(path), text = text }
    elseif path then
      missing[#missing + 1] = path
    end
  end
  return list
end

-- A link could lead to any file of this machine: it is not followed.
local function collect(folder, values, missing)
  local list, seen = scripts(values, missing), {}
  for _, file in ipairs(list) do seen[file.path] = true end
  for _, path in ipairs(files.list(folder)) do
    local full = folder .. "/" .. path
    local mode = lfs.symlinkattributes(full, "mode")
    if mode ~= "file" then fail(("%s is a %s: it is not packed"):format(path, mode)) end
    local wrong = archive.refuse_name(path)
    if wrong then fail(("%q: %s"):format(path, wrong)) end
    if path ~= archive.CHECKSUMS and not seen[path] then
      list[#list + 1] = { path = path, text = check(files.read(full)),
        mtime = lfs.attributes(full, "modification") }
    end
  end
  table.sort(list, function(a, b) return a.path < b.path end)
  return list
end

-- results.db lists the checksums of the other files: they are new as well.
local function rewrite_database(names, list, text, temporary)
  check(files.write(temporary, text))
  do
    local db <close> = check(sqlite.open(temporary, { mode = "rw" }))
    local was = {}
    for row in db:rows("select path from artifact") do was[names:text(row.path)] = true end
    assert(db:exec("delete from artifact"))
    for _, file in ipairs(list) do
      if was[file.path] then
        db:insert("artifact", { { path = file.path, bytes = #file.text,
          sha256 = hash.sha256(file.text) } })
      end
    end
    names:database(db)
  end
  local new = files.read(temporary)
  os.remove(temporary)
  return check(new, "results.db cannot be read again")
end

local function anonymize(list, values, out)
  local names = anonymous.new({ values.hostname or "" })
  local database
  for _, file in ipairs(list) do
    if file.path == results.FILE then
      database = file
    elseif not file.path:find("^scripts/") then
      file.path = names:text(file.path)
      if not file.text:find("\0", 1, true) then file.text = names:text(file.text) end
    end
  end
  if not database then return end
  database.text = rewrite_database(names, list, database.text, files.temporary(out))
end

local opt = command.options("nclua pack",
  "A run as one file: scripts, raw rows, tables, manifest, a checksum of every file.", {
    { "run_dir", "", "the run's folder", positional = "?" },
    { "output", "", "the file (default: RUN_DIR.nclua)", alias = "-o" },
    { "anonymize", false, "replace host names and network addresses" },
  }, arg)
local folder = opt.run_dir[1] and opt.run_dir[1]:gsub("(.)/+$", "%1")
if not folder then fail("missing argument: the run's folder (try --help)") end
local values, message = manifest.read(folder)
check(values, message)
local out = opt.output ~= "" and opt.output or folder .. ".nclua"
local missing = {}
local list = collect(folder, values, missing)
if opt.anonymize then anonymize(list, values, out) end
check(archive.write(out, list))
table.sort(missing)
for _, path in ipairs(missing) do
  io.stderr:write("nclua pack: without ", path, ": it is not what the run used any more\n")
end
print(("%s: %d files"):format(out, #list))
