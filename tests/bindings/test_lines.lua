--- nclua.lines without a terminal: what a script may do with it. Terminal and Ctrl-C: see
--- tests/host/test_repl_session.lua and test_repl.lua.
local luaunit = require("luaunit")
local lines = require("nclua.lines")

TestLines = {}

function TestLines.test_call()
  luaunit.assertEquals({ lines.call(print, math.max, 1, 3) }, { true, 3 })
  luaunit.assertEquals({ lines.call(print, select, "#", nil, nil) }, { true, 2 })
  local handler = function(message) return "<" .. tostring(message) .. ">" end
  luaunit.assertEquals({ lines.call(handler, error, "a", 0) }, { false, "<a>" })
  luaunit.assertEquals({ lines.call(handler, nil) },
    { false, "<attempt to call a nil value>" })
end

function TestLines.test_calls_nest_and_restore_hooks()
  local ok, inner = lines.call(print, function()
    local _, value = lines.call(print, function() return 5 end)
    luaunit.assertNotNil(debug.gethook())
    return value
  end)
  luaunit.assertEquals({ ok, inner }, { true, 5 })
  luaunit.assertNil((debug.gethook()))
end

function TestLines.test_an_error_in_the_handler()
  local ok = lines.call(function() error("again") end, error, "first")
  luaunit.assertFalse(ok)
end

function TestLines.test_call_cannot_yield()
  local thread = coroutine.create(function()
    return lines.call(tostring, coroutine.yield)
  end)
  local _, ok, message = coroutine.resume(thread)
  luaunit.assertFalse(ok)
  luaunit.assertStrContains(message, "yield")
end

-- Each: a call that must raise, and what it says.
local WRONG = {
  { function() lines.call(1, print) end, "function expected" },
  { function() lines.call(print) end, "value expected" },
  { function() lines.append("/tmp") end, "string expected" },
  { function(e) e.read({}, "> ") end, "lines.editor expected" },
  { function(e) e:on_tab(5) end, "function expected" },
  { function(e) e:remember({}) end, "string expected" },
}

function TestLines.test_wrong_arguments()
  local editor <close> = assert(lines.editor())
  for _, case in ipairs(WRONG) do
    luaunit.assertErrorMsgContains(case[2], case[1], editor)
  end
end

function TestLines.test_closed_editor()
  local editor = assert(lines.editor())
  luaunit.assertEquals(tostring(editor:remember("x = 1\ny = 2")), "lines.editor")
  editor:close()
  editor:close()
  luaunit.assertEquals(tostring(editor), "lines.editor (closed)")
  for _, name in ipairs({ "read", "remember", "on_tab" }) do
    luaunit.assertErrorMsgContains("closed editor", editor[name], editor, "x")
  end
end

function TestLines.test_append_fails_with_a_reason()
  local ok, message, code = lines.append("/nonexistent/folder/file", "x")
  luaunit.assertNil(ok)
  luaunit.assertStrContains(message, "/nonexistent/folder/file")
  luaunit.assertEquals(code, "ENOENT")
end
