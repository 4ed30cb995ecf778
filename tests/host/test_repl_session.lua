--- The prompt on a real terminal; see repl_session.lua.
local files = require("nclua.files")
local lfs = require("lfs")
local luaunit = require("luaunit")
local repl_session = require("host.repl_session")
local scratch = require("scratch")

local RECORDING = "docs/repl-session.txt"

-- What was typed, without the times that were measured.
local function typed(text)
  local lines = {}
  for line in text:gmatch("[^\n]+") do
    if line:find("^[>$]") then lines[#lines + 1] = line:gsub("%s+$", "") end
  end
  return lines
end

TestReplSession = {}

function TestReplSession.test_session()
  luaunit.skipIf(not repl_session.is_possible(), "tmux is not installed")
  local folder <close> = scratch.folder()
  local text = repl_session.record(folder.path)
  local recorded = typed(assert(files.read(RECORDING)))
  luaunit.assertEquals(table.move(typed(text), 1, #recorded, 1, {}), recorded,
    RECORDING .. " is another session; record it again: see repl_session.lua")
  local history = folder.path .. "/state/nclua/history"
  luaunit.assertEquals(lfs.attributes(history, "permissions"), "rw-------")
  luaunit.assertStrContains(assert(files.read(history)),
    "\nfor i = 1, 2 do\\nprint(w.comms[i])\\nend \n")
end
