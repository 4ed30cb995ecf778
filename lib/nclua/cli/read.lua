--- nclua read FILE...: what a file is and what it says; a folder of rank logs is compared.
local command = require("nclua.command")
local compare = require("nclua.read.compare")
local files = require("nclua.files")
local lfs = require("lfs")
local output = require("nclua.read.output")
local read = require("nclua.read")

local options = command.options("nclua read",
  "Reads NCCL logs (2.4 to 2.30), nccl-tests output and JSON, topology and graph XML,"
  .. " nvidia-smi topo, Nsight Systems exports, tuner observations; also gzip, and - for"
  .. " standard input. A folder of rank logs of one run is compared. Exit status: 0 all was"
  .. " understood, 1 something was not, 2 wrong usage.",
  {
    { "files", "", "files or folders", positional = "+" },
    { "json", false, "print JSON" },
    { "csv", false, "print one table as CSV" },
    { "table", "", "the table that --csv prints (default: the first)" },
    { "db", "", "write all tables into this SQLite database" },
    { "all", false, "print all rows of all tables" },
  }, arg)

collectgarbage("generational") -- much is read, little is kept

local is_understood = true

local function complain(path, message)
  io.stderr:write("nclua read: ", path, ": ", message, "\n")
  is_understood = false
end

local function add(docs, path)
  local doc, message = read.file(path)
  if not doc then return complain(path, message) end
  if doc.problem_count > 0 then is_understood = false end
  docs[#docs + 1] = doc
end

local function collect(paths)
  local docs, has_folder = {}, false
  for _, path in ipairs(paths) do
    if lfs.attributes(path, "mode") == "directory" then
      has_folder = true
      for _, name in ipairs(files.list(path)) do add(docs, path .. "/" .. name) end
    else
      add(docs, path)
    end
  end
  return docs, has_folder
end

local function comparison_document(docs)
  local result = compare.ranks(docs)
  if result.ranks < 2 then return nil end
  return {
    path = "comparison", kind = "ranks of one run", problems = {}, problem_count = 0,
    facts = { { "ranks", result.ranks }, { "odd one out", result.odd_one or "none" } },
    tables = #result.differences > 0 and { {
      name = "differences", columns = { "property", "rank", "value", "usual" },
      rows = result.differences,
    } } or {},
  }
end

local function write(...) io.stdout:write(...) end

local function print_json(docs)
  if #docs ~= 1 then write("[") end
  for i, doc in ipairs(docs) do
    if i > 1 then write(",\n") end
    output.write_json(doc, write)
  end
  write(#docs ~= 1 and "]\n" or "\n")
end

local function print_csv(docs)
  local text, message = output.csv(docs, options.table ~= "" and options.table or nil)
  if not text then return complain("--csv", message) end
  write(text)
end

local function print_text(docs)
  for i, doc in ipairs(docs) do
    if i > 1 then write("\n") end
    output.text(doc, write, options.all)
  end
end

local docs, has_folder = collect(options.files)
local comparison = has_folder and comparison_document(docs)
if comparison then table.insert(docs, 1, comparison) end
if options.db ~= "" then
  local ok, message = output.database(docs, options.db)
  if not ok then complain(options.db, message) end
end
if options.json then
  print_json(docs)
elseif options.csv then
  print_csv(docs)
elseif options.db == "" then
  print_text(docs)
end
os.exit(is_understood and 0 or 1, true)
