local luaunit = require("luaunit")
local progress = require("nclua.progress")

-- A file that remembers, and a clock that goes on by a second at each step.
local function recorded()
  local out = { text = "" }
  function out:write(...) self.text = self.text .. table.concat({ ... }) end
  function out.flush() end
  local clock = { ns = 0 }
  return out, clock, function() return clock.ns end
end

TestProgress = {}

function TestProgress.test_plain_lines_when_nobody_watches()
  local out, clock, now_ns = recorded()
  local bar = progress.start({ total = 4, out = out, terminal = false, now_ns = now_ns })
  bar:enter("one")
  bar:step(2)
  bar:enter("one")
  clock.ns = 1000000000
  bar:enter("two")
  bar:finish()
  luaunit.assertEquals(out.text, "[  0%] one\n[ 50%] two\n")
end

function TestProgress.test_one_line_on_a_terminal()
  local out, clock, now_ns = recorded()
  local bar = progress.start({ total = 4, out = out, terminal = true, columns = 50,
    now_ns = now_ns })
  bar:enter("one")
  clock.ns = 2000000000
  bar:step()
  bar:step() -- too soon to be shown
  bar:finish()
  local _, newlines = out.text:gsub("\n", "")
  luaunit.assertEquals(newlines, 0)
  luaunit.assertStrContains(out.text, "[ 25%] one  0.5 cycles/s, about 6 s")
  luaunit.assertNil(out.text:find("50%%"))
  luaunit.assertStrContains(out.text, "\r\27[K")
  luaunit.assertStrMatches(out.text, ".*\r\27%[K")
end

function TestProgress.test_never_past_the_end()
  local out, _, now_ns = recorded()
  local bar = progress.start({ total = 1, out = out, terminal = false, now_ns = now_ns })
  bar:step(5)
  bar:enter("end")
  luaunit.assertEquals(out.text, "[100%] end\n")
end
