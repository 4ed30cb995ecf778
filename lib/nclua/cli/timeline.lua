--- nclua timeline FILE...: what a trace says, as text, as a page, for Perfetto.
local chrome = require("nclua.timeline.chrome")
local command = require("nclua.command")
local events = require("nclua.timeline.events")
local files = require("nclua.files")
local page = require("nclua.timeline.page")
local summary = require("nclua.timeline.summary")
local timeline = require("nclua.timeline")
local trace_file = require("nclua.trace_file")

local options = command.options("nclua timeline",
  "Summarises a trace (nclua --trace, the trace plugin, an Nsight Systems export); several"
  .. " files, of the ranks of one run, are one trace.",
  {
    { "files", "", "trace files", positional = "+" },
    { "html", "", "write the timeline as one HTML file: zoom with the wheel, drag, hover" },
    { "chrome", "", "write JSON for chrome://tracing and ui.perfetto.dev" },
    { "most", 200000, "events in --html and --chrome at most", min = 1 },
    { "all", false, "print all rows of the summary" },
  }, arg)

local function fail(message)
  io.stderr:write("nclua timeline: ", (message:gsub("^[^\n]-:%d+: ", "")), "\n")
  os.exit(1, true)
end

-- Pieces are written as they come; the file appears whole.
local function write_file(path, produce)
  local temporary = files.temporary(path)
  local file, message = io.open(temporary, "wb")
  if not file then return fail(message) end
  local ok, why = pcall(produce, function(text) assert(file:write(text)) end)
  ok = file:close() and ok
  if not ok then
    os.remove(temporary)
    return fail(tostring(why))
  end
  ok, message = files.rename(temporary, path)
  if not ok then fail(message) end
  print("wrote " .. path)
end

local function write_pictures(db)
  local span = timeline.span(db) or { start = 0, stop = 0 }
  local lanes, left_out = events.lanes(db, span.start, options.most)
  if left_out > 0 then
    io.stderr:write(("nclua timeline: %d events do not fit (--most)\n"):format(left_out))
  end
  if options.html ~= "" then
    local about = { title = table.concat(options.files, " "), left_out = left_out,
      span_ns = span.stop - span.start }
    write_file(options.html, function(write) page.write(lanes, about, write) end)
  end
  if options.chrome ~= "" then
    write_file(options.chrome, function(write) chrome.write(lanes, write) end)
  end
end

local function main()
  local db <close>, message = trace_file.open(options.files)
  if not db then return fail(message) end
  if options.html ~= "" or options.chrome ~= "" then write_pictures(db) end
  if options.html == "" and options.chrome == "" or options.all then
    summary.write(db, function(...) io.stdout:write(...) end, options.all)
  end
end

local ok, message = pcall(main)
if not ok then fail(tostring(message)) end
