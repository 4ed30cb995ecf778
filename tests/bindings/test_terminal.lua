local luaunit = require("luaunit")
local process = require("nclua.process")
local terminal = require("nclua.terminal")

local ASK = [[
local terminal = require("nclua.terminal")
print(terminal.is_terminal("stdout"), terminal.columns("stdout"))
]]

TestTerminal = {}

function TestTerminal.test_a_pipe_is_none()
  local answer = assert(process.run({ os.getenv("NCLUA"), "-e", ASK }))
  luaunit.assertEquals(answer.stdout, "false\tnil\n")
end

function TestTerminal.test_a_terminal_is_one()
  -- script(1) runs a command on a terminal of its own.
  local command = "stty cols 91; exec " .. os.getenv("NCLUA") .. " -e '" .. ASK .. "'"
  local answer, message = process.run({ "script", "-qec", command, "/dev/null" })
  if not answer then luaunit.skip("script(1): " .. message) end
  luaunit.assertStrContains(answer.stdout, "true\t91")
end

function TestTerminal.test_unknown_stream()
  luaunit.assertErrorMsgContains("stdout", terminal.is_terminal, "out")
  luaunit.assertErrorMsgContains("stdin", terminal.columns, 1)
end
