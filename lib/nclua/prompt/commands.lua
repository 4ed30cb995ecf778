--- What begins with a colon at the prompt.
local commands = {}

local evaluate = require("nclua.prompt.evaluate")
local help = require("nclua.help")
local measure = require("nclua.measure")
local members = require("nclua.prompt.members")

local OVERVIEW = [[
An expression is evaluated and printed, a statement is run; an unfinished one goes on in
the next line. The last result is in _.

  :help NAME     a module, function, type or object: nccl, comm:all_reduce, cuda.buffer
  :time EXPR     how long it takes on the host
  :load FILE     run a script here; its globals stay
  :quit          or Ctrl-D

Tab completes. Up-arrow finds former entries, Ctrl-R searches them. Ctrl-C interrupts, in a
wait for a device too; where it does not, another one two seconds later ends nclua.

Loaded: cuda, nccl, process, sqlite, stats, plot, world. A measured all_reduce:
  w = world()
  x = w:buffers("f32", 1 << 20, 1)
  w:time("all_reduce", x, x, "sum")
And of all sizes, drawn:
  s = w:sweep("all_reduce")
  plot(s.bytes, s.us, { log = "xy" })]]

-- An object is explained by its type; a function by its name.
local function topic_of(name)
  local path = {}
  for part in name:gmatch("[%a_][%w_]*") do path[#path + 1] = part end
  local object = members.at(path)
  if help.find(name) or object == nil then return name end
  local metatable = type(object) ~= "string" and debug.getmetatable(object)
  return metatable and rawget(metatable, "__name") or name
end

-- For "comm:abort", where comm is a variable of the user: its type, then the method.
local function method_of(name)
  local object_name, method = name:match("^(.-)[:.]([%a_][%w_]*)$")
  if not object_name then return name end
  local topic = topic_of(object_name)
  return topic ~= object_name and topic .. ":" .. method or name
end

local RUN = {}

function RUN.help(rest)
  if rest == "" then
    print(OVERVIEW)
    return
  end
  local text, message = help.text(topic_of(rest))
  if not text then text = help.text(method_of(rest)) end
  print(text or message)
end

function RUN.time(rest, show)
  local fn, message = evaluate.load(rest)
  if not fn then error(message, 0) end
  local results
  local us = measure.host_us(function() results = table.pack(fn()) end)
  show(table.unpack(results, 1, results.n))
  print(us < 1000 and ("%.1f us"):format(us) or us < 1e6 and ("%.3f ms"):format(us / 1e3)
    or ("%.3f s"):format(us / 1e6))
end

function RUN.load(rest, show)
  local fn, message = loadfile(rest, "t")
  if not fn then error(message, 0) end
  show(fn())
end

---@param name string
---@param rest string
---@param show fun(...) prints results
function commands.run(name, rest, show)
  local run = RUN[name]
  if not run then error(("no command ':%s' (try :help)"):format(name), 0) end
  run(rest, show)
end

return commands
