--- The prompt: reads, evaluates, prints. The host gives lines and interrupts (nclua.lines).
local prompt = {}

local commands = require("nclua.prompt.commands")
local complete = require("nclua.prompt.complete")
local display = require("nclua.prompt.display")
local evaluate = require("nclua.prompt.evaluate")
local history = require("nclua.prompt.history")
local lines = require("nclua.lines")
local prelude = require("nclua.prompt.prelude")
local terminal = require("nclua.terminal")

local function report(message)
  local follows_key = message:find("interrupted") and terminal.is_terminal("stdin")
  if follows_key then io.write("\n") end -- the terminal has shown ^C
  io.stdout:flush()
  io.stderr:write("nclua: ", message, "\n")
end

local function show(...)
  local results = table.pack(...)
  if results.n > 0 then _G._ = results[1] end
  for i = 1, results.n do io.write(display.text(results[i]), "\n") end
end

-- All lines of an entry are one: in the history, too. A cancelled one is false.
local function read_entry(read)
  local text = read("> ")
  if not text or text:find("^%s*:") then return text end
  local _, _, is_incomplete = evaluate.load(text)
  while is_incomplete do
    local line = read(">> ")
    if line == false then return false end
    if not line then break end
    text = text .. "\n" .. line
    _, _, is_incomplete = evaluate.load(text)
  end
  return text
end

local function run_code(text)
  local fn, message = evaluate.load(text)
  if not fn then error(message, 0) end
  show(fn())
end

-- Returns true when the session is over.
local function run_entry(text)
  local name, rest = text:match("^%s*:(%S*)%s*(.-)%s*$")
  if name == "quit" or name == "q" then return true end
  local ok, message
  if name then
    ok, message = lines.call(evaluate.explain, commands.run, name, rest, show)
  else
    ok, message = lines.call(evaluate.explain, run_code, text)
  end
  if not ok then report(message) end
end

local function reader_of(editor)
  if not editor then return function() return lines.read() end end
  return function(mark) return editor:read(mark) end
end

local function open_editor()
  if not terminal.is_terminal("stdin") or not terminal.is_terminal("stdout") then return end
  local editor, message = lines.editor()
  if not editor then
    report(message)
    return
  end
  return editor:on_tab(complete.tab)
end

local function recall(editor, path)
  if not path then return end
  for _, entry in ipairs(history.read(path)) do editor:remember(entry) end
end

local function keep(editor, path, text)
  if not text:find("%S") then return end
  editor:remember(text)
  local ok, message = true, nil
  if path then ok, message = history.add(path, text) end
  if ok then return path end
  report("history is not kept: " .. message)
end

---Until the end of the input or ":quit".
function prompt.run()
  prelude.install()
  local editor <close> = open_editor()
  local read, path = reader_of(editor), history.path()
  if editor then
    recall(editor, path)
    io.write(":help tells how; Tab completes, Ctrl-C interrupts, Ctrl-D ends\n")
  end
  while true do
    local text = read_entry(read)
    if text == nil then break end
    if text and editor and text:find("%S") then path = keep(editor, path, text) end
    if text and run_entry(text) then break end
  end
end

return prompt
