--- nclua verify FILE|DIR: every checksum of a run, and every table made again.
local archive = require("nclua.archive")
local command = require("nclua.command")
local lfs = require("lfs")
local verify = require("nclua.verify")

local function finish(problems)
  for _, problem in ipairs(problems) do io.stderr:write("nclua verify: ", problem, "\n") end
  os.exit(#problems == 0 and 0 or 1)
end

local function report(outcome)
  table.sort(outcome.problems)
  table.sort(outcome.notes)
  for _, note in ipairs(outcome.notes) do print(note) end
  local text = "%d checksums compared, %d tables made again from the raw rows, %d problems"
  print(text:format(outcome.files, outcome.tables, #outcome.problems))
  finish(outcome.problems)
end

local opt = command.options("nclua verify",
  "Compares every checksum of a run, packed or not, makes every table again from the raw\n"
    .. "rows and compares it bit for bit.", {
    { "what", "", "a packed file, or a run's folder", positional = "?" },
    { "script", "", "the chapter's file, if nclua does not have it; it is run" },
  }, arg)
local what, script = opt.what[1], opt.script ~= "" and opt.script or nil
if not what then
  io.stderr:write("nclua verify: missing argument: FILE or DIR (try --help)\n")
  os.exit(2)
end
if lfs.attributes(what, "mode") == "directory" then
  report(verify.folder(what, script))
else
  local folder = ("%s/nclua-verify-%08x"):format(os.getenv("TMPDIR") or "/tmp",
    math.random(0, 0xffffffff))
  local count, problems = archive.extract(what, folder)
  if not count then finish(problems) end
  local outcome = verify.folder(folder, script)
  archive.remove(folder)
  report(outcome)
end
