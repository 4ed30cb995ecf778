--- A session at the prompt, typed into a real terminal (tmux), and what the screen showed.
---
--- As a script it prints the recording that docs/repl-session.txt holds:
---   build/nclua tests/host/repl_session.lua > docs/repl-session.txt
package.path = "tests/?.lua;" .. package.path
local process = require("nclua.process")
local scratch = require("scratch")

local repl_session = {}

-- What is typed (names of keys in < >), and a pattern that the screen shows afterwards.
local STEPS = {
  { "nclua<Enter>", "Ctrl%-D ends\n> $" },
  { "w = wor<Tab>)<Enter>", "world%(%)\n> $" },
  { "w<Enter>", "world: 4 ranks, one a device[^\n]*\n> $" },
  { ":help nccl.all_reduce<Enter>", "returns   nccl.comm comm\n> $" },
  { "x = w:bu<Tab>", "x = w:buffers%($" },
  { '"f32", 1 << 20, 1)<Enter>', "1%)\n> $" },
  { "w:all<Tab><Tab>", "all_gather  all_reduce  all_to_all\n> w:all_$" },
  { "reduce(x, x, 'sum')<Enter>", "world: [^\n]*\n> $" },
  { "x[1]<Enter>", "4 MiB, device 0 { 4, 4, 4, 4, 4, 4, ... }\n> $" },
  { "w:time('all_reduce', x, x, 'max')<Enter>", "us median of 10 x 10 [^\n]* bus\n> $" },
  { "s = w:sweep('all_reduce')<Enter>", "sweep[^\n]*\n> $", 60 },
  { "plot(s.bytes, s.us, { log = 'xy' })<Enter>", "%-%-%-\n[^\n]*4.19M\n *log xy\n> $" },
  { ":time w:all_reduce(x, x, 'max')<Enter>", "\n[%d.]+ [mu]?s\n> $" },
  { "for i = 1, 2 do<Enter>", "\n>> $" },
  { "print(w.comms[i])<Enter>", "%]%)\n>> $" },
  { "end <Enter>", "rank 1 of 4, device 1\n> $" }, -- "end" alone is a key's name
  { "-- a receive that nobody sends to, and Ctrl-C<Enter>", "Ctrl%-C\n> $" },
  { "nccl.group(function() w.ranks[1]:recv(x, 1) end)<Enter>", "end%)\n> $" },
  { "w:sync()<Enter>", "w:sync%(%)\n$" },
  { "<C-c>", "sync: interrupted: [^>]*\n> $" },
  { "x[1]<Enter>", "device 0 %(its device is busy: values not read%)\n> $" },
  { "w:abort()<Enter>", "abort%(%)\n> $" },
  { "w<Enter>", "closed\n> $" },
  { "while true do end<Enter>", "true do end\n$" },
  { "<C-c>", "interrupted\n[^>]*> $" },
  { ":quit<Enter>", ":quit\n%$ $" },
  { "echo status $?<Enter>", "status 0\n%$ $" },
}

---@return boolean
function repl_session.is_possible()
  local result = process.run({ "tmux", "-V" }, {})
  return result ~= nil and result.ok
end

local terminal = {}
terminal.__index = terminal

function terminal:tmux(...)
  local result = assert(process.run({ "tmux", "-L", "nclua", "-f", "/dev/null", ... },
    { env = self.env, unset = { "TMUX*", "LUA_*" }, timeout_s = 20 }))
  assert(result.ok, result.stderr)
  return result.stdout
end

-- Without the blank lines below the cursor; a prompt keeps its space.
function terminal:screen()
  local text = self:tmux("capture-pane", "-p", "-J", "-S", "-")
  text = "\n" .. text:gsub("[ \t]+\n", "\n"):gsub("\n+$", "")
  return (text:gsub("\n([>$]+)$", "\n%1 "):gsub("^\n", "", 1))
end

function terminal:type(keys)
  for text, key in keys:gmatch("([^<]*)(<?[%w-]*>?)") do
    local name = key:match("^<([%w-]+)>$")
    if not name then text = text .. key end
    if text ~= "" then self:tmux("send-keys", "-l", "--", text) end
    if name then self:tmux("send-keys", name) end
  end
end

function terminal:wait_for(pattern, seconds)
  local text
  for _ = 1, seconds * 20 do
    text = self:screen()
    if text:find(pattern) or (text .. "\n"):find(pattern) then return text end
    process.run({ "sleep", "0.05" }, {})
  end
  error(("the screen never showed %q:\n%s"):format(pattern, text), 0)
end

local function open(folder)
  local program = assert(process.run({ "readlink", "-f", arg and arg[-1] or "" }, {}))
  local nclua = os.getenv("NCLUA") or program.stdout:match("^[^\n]*")
  local env = {
    PATH = nclua:match("^(.*)/[^/]*$") .. ":" .. os.getenv("PATH"), HOME = folder,
    XDG_STATE_HOME = folder .. "/state", TMUX_TMPDIR = folder,
    LC_ALL = "C.UTF-8", NCLUA_BACKEND = "cpu", NCLUA_CPU_DEVICES = "4",
  }
  local self = setmetatable({ env = env }, terminal)
  self:tmux("new-session", "-d", "-x", "90", "-y", "40",
    "env PS1='$ ' /bin/sh")
  return self
end

function terminal.__close(self)
  self:tmux("kill-server")
end

---Types everything and returns the whole screen.
---@param folder string for the history and the terminal's socket
---@return string
function repl_session.record(folder)
  local session <close> = open(folder)
  session:wait_for("%$ $", 10)
  local text
  for _, step in ipairs(STEPS) do
    session:type(step[1])
    text = session:wait_for(step[2], step[3] or 20)
  end
  return text
end

if arg and arg[0] and arg[0]:find("repl_session.lua$") then
  local folder <close> = scratch.folder()
  print("Made by: build/nclua tests/host/repl_session.lua > docs/repl-session.txt\n"
    .. "CPU backend, 4 virtual devices: the times are a CPU's and say nothing of a GPU.\n")
  print((repl_session.record(folder.path):gsub("\n%$ $", "")))
end

return repl_session
