--- nclua report RUN_DIR...: makes report.html again.
local command = require("nclua.command")
local report_page = require("nclua.report_page")

local options = command.options("nclua report",
  "Makes a run's report.html again, from its results.db and tables.",
  { { "runs", "", "run directories", positional = "+" } }, arg)

local status = 0
for _, folder in ipairs(options.runs) do
  local path, message = report_page.write(folder)
  if path then
    print("wrote " .. path)
  else
    io.stderr:write("nclua report: ", message, "\n")
    status = 1
  end
end
os.exit(status, true)
