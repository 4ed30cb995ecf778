--- nclua runs [ROOT]: the runs below a folder, oldest first.
local command = require("nclua.command")
local files = require("nclua.files")
local manifest = require("nclua.manifest")
local past_run = require("nclua.past_run")
local text_table = require("nclua.text_table")

local options = command.options("nclua runs",
  "Lists the runs below ROOT (default: here), oldest first. Exit status: 0 all could be"
  .. " read, 1 one could not, 2 wrong usage.",
  { { "root", "", "folder", positional = "?" } }, arg)

local COLUMNS = { "chapter", "run", "started", "backend", "hardware", "NCCL", "ranks", "ok",
  "folder" }

local function state(run)
  if not files.exists(run.folder .. "/" .. manifest.FILE) then return "incomplete" end
  if run.contracts.failed > 0 then return "wrong results" end
  for _, note in ipairs(run.notes) do
    if note:find("^FAILED") then return "failed" end
  end
  return "ok"
end

local folders, message = past_run.find(options.root[1] or ".")
if not folders then
  io.stderr:write("nclua runs: ", message, "\n")
  os.exit(1, true)
end

local rows, status = {}, 0
for _, folder in ipairs(folders) do
  local run, why = past_run.open(folder)
  if run then
    rows[#rows + 1] = { run.run.chapter, run.run.run_id, run.run.started_utc,
      run.run.backend, past_run.hardware(run), past_run.fact(run, "nccl_version"),
      past_run.ranks(run), state(run), folder }
  else
    io.stderr:write("nclua runs: ", why, "\n")
    status = 1
  end
end
table.sort(rows, function(a, b) return tostring(a[3]) < tostring(b[3]) end)
if #rows == 0 then
  print("no runs")
else
  io.write(text_table.format(COLUMNS, rows, { most_width = 100 }))
end
os.exit(status, true)
