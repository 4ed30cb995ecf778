--- The prompt, as a program that reads its entries from standard input.
local files = require("nclua.files")
local help = require("nclua.help")
local lfs = require("lfs")
local luaunit = require("luaunit")
local process = require("nclua.process")
local scratch = require("scratch")

local complete = require("nclua.prompt.complete")
local display = require("nclua.prompt.display")
local history = require("nclua.prompt.history")
local lines = require("nclua.lines")
local plot = require("nclua.prompt.plot")

local NCLUA = assert(os.getenv("NCLUA"), "NCLUA must name the program under test")

local function session(text, env)
  env = env or {}
  env.NCLUA_CPU_DEVICES = "2"
  local result = assert(process.run({ NCLUA, "-i" }, { stdin = text, env = env,
    timeout_s = 60 }))
  luaunit.assertEquals(result.exit_code, 0, ("%s-> signal %s, %s%s"):format(text,
    result.signal, result.stdout, result.stderr))
  return (result.stdout:gsub("^nclua [^\n]*\n", "")), result.stderr
end

-- What is typed, a pattern of the output, and one of the errors.
local SESSIONS = {
  { "1 + 1\n=2 + 3\nx = 7\n", "^2\n5\n$", "^$" },
  { "for i = 1, 2 do\nprint(i)\nend\n", "^1\n2\n$", "^$" },
  { "'a\\nb'\n", '^"a\\nb"\n$', "^$" },
  { "nil\nprint(1)\n", "^nil\n1\n$", "^$" },
  { "5\n_ + 1\n", "^5\n6\n$", "^$" },
  { "f = function() error('deep') end\nfunction g() f() end\ng()\n", "^$",
    "^nclua: stdin:1: deep\n  stdin:1 in 'f'\n" },
  { "local =\n1\n", "^1\n$", "^nclua: stdin:1: <name> expected" },
  { "error({})\n1\n", "^1\n$", "^nclua: table: " },
  { ":time 3\n", "^3\n[%d.]+ us\n$", "^$" },
  { ":foo\n", "^$", "^nclua: no command ':foo' %(try :help%)\n$" },
  { ":help\n", "^An expression is evaluated", "^$" },
  { ":help comm:abort\n", "^nccl.abort%(comm%)\n  Ends what runs", "^$" },
  { "s = cuda.stream()\n:help s:sync\n", "^cuda.stream:sync%(%)\n", "^$" },
  { ":help nccl.all_reducee\n", "^no help for .* do you mean nccl.all_reduce%?\n$", "^$" },
  { ":quit\n1\n", "^$", "^$" },
  { "w = world()\nx = w:buffers('f32', 8, 1)\nw:time('all_reduce', x, x)\n",
    "^[%d.]+ us median of 10 x 10 .* 32 B, [%d.]+ GB/s bus\n$", "^$" },
  { "w = world()\nx = w:buffers('i32', 8, 3)\n_ = w:all_reduce(x, x)\nx[2]\n",
    "^cuda.buffer: 8 i32, 32 B, device 1 { 6, 6, 6, 6, 6, 6, ... }\n$", "^$" },
  { "w = world()\nw.comms\n", "nccl.comm: rank 0 of 2, device 0", "^$" },
  { "cuda.buffer('f64', 2):fill(0.5)\n", "16 B, device 0 { 0.5, 0.5 }\n$", "^$" },
  { "cuda.buffer('f64', 2):close()\n", "^$", "^$" },
  { "b = cuda.buffer('f64', 2)\nb:close()\nb\n", "closed", "^$" },
}

TestRepl = {}

function TestRepl.test_sessions()
  for _, case in ipairs(SESSIONS) do
    local typed, out, err = table.unpack(case)
    local stdout, stderr = session(typed)
    local what = ("%s-> %s%s"):format(typed, stdout, stderr)
    luaunit.assertNotNil(stdout:find(out), what)
    luaunit.assertNotNil(stderr:find(err), what)
  end
end

function TestRepl.test_load()
  local folder <close> = scratch.folder()
  assert(files.write(folder.path .. "/a.lua", "loaded = 5 return 'done'"))
  local out = session((":load %s/a.lua\nloaded\n"):format(folder.path))
  luaunit.assertEquals(out, '"done"\n5\n')
end

function TestRepl.test_display_is_bounded()
  local long, deep = {}, {}
  for i = 1, 10000 do long[i] = i end
  for i = 1, 1000 do long["key" .. i] = ("x"):rep(1000) end
  for _ = 1, 100 do deep = { deep, deep } end
  long.itself = long
  for _, value in ipairs({ long, deep, _G }) do
    local text = display.text(value)
    local _, count = text:gsub("\n", "")
    luaunit.assertTrue(count <= 61, count)
  end
  luaunit.assertTrue(#display.text(("y"):rep(1 << 20)) < 600)
  luaunit.assertEquals(display.text({ 1, a = { b = {} } }), "{ 1, a = { b = {} } }")
end

--- Completion must not call what a script made: neither __index functions nor __pairs.
function TestRepl.test_completion_runs_no_code()
  local function bad() error("completion ran code") end
  _G.trap = setmetatable({ own = 1 }, { __index = bad, __pairs = bad, __len = bad,
    __name = "cuda.buffer" })
  _G.derived = setmetatable({}, { __index = { inherited = print } })
  luaunit.assertEquals(complete.tab("trap.o"), "wn")
  luaunit.assertNil(complete.tab("trap.own.x"))
  luaunit.assertEquals(complete.tab("derived:inh"), "erited(")
  _G.trap, _G.derived = nil, nil
end

function TestRepl.test_completion()
  _G.one_vector = require("nclua.stats").vector(1)
  local CASES = {
    { "x = string.for", "mat(" },
    { "one_vector:med", "ian(" },
    { "one_vec", "tor" },
    { "while tr", nil },
    { "require('nclua.cli.pre", "dict" },
    { ":he", "lp " },
    { ":load tests/run.l", "ua" },
    { "no_such_table.x", nil },
    { "", "  " },
  }
  for _, case in ipairs(CASES) do
    local insert = complete.tab(case[1])
    if case[2] then luaunit.assertEquals(insert, case[2], case[1]) end
  end
  local insert, shown = complete.tab("table.")
  luaunit.assertNil(insert)
  luaunit.assertStrContains(shown, "concat")
  _G.one_vector = nil
end

function TestRepl.test_history_is_private_and_keeps_lines_together()
  local folder <close> = scratch.folder()
  local path = folder.path .. "/state/nclua/history"
  local ENTRIES = { "x = 1", "for i = 1, 2 do\n  print('\\n')\nend", "\\" }
  for _, entry in ipairs(ENTRIES) do assert(history.add(path, entry)) end
  luaunit.assertEquals(history.read(path), ENTRIES)
  luaunit.assertEquals(lfs.attributes(path, "permissions"), "rw-------")
end

function TestRepl.test_history_follows_no_link()
  local folder <close> = scratch.folder()
  assert(files.write(folder.path .. "/other", "text\n"))
  assert(lfs.link("other", folder.path .. "/history", true))
  luaunit.assertNil((lines.append(folder.path .. "/history", "x\n")))
  luaunit.assertEquals(files.read(folder.path .. "/other"), "text\n")
end

--- All that is documented can be found, and every function of the prelude's modules is.
function TestRepl.test_help_knows_every_function()
  for _, module in ipairs({ "cuda", "nccl", "process", "sqlite", "stats" }) do
    for name, value in pairs(require("nclua." .. module)) do
      if type(value) == "function" then
        luaunit.assertNotNil(help.text(module .. "." .. name), module .. "." .. name)
      end
    end
  end
end

function TestRepl.test_plot()
  local text = plot.text({ 1, 10, 100 }, { 1, 10, 100 }, { log = "xy", title = "line" })
  luaunit.assertStrContains(text, "line; log xy")
  local first, last = text:match("^[^|]*|([^\n]*)"), text:match("|([^|\n]*)\n%s*%+%-")
  luaunit.assertEquals({ #first, last:sub(1, 1) }, { 60, "*" })
  luaunit.assertErrorMsgContains("no place for 0", plot.text, { 0, 1 }, { 1, 1 },
    { log = "x" })
  luaunit.assertErrorMsgContains("2 values of x, but 1", plot.text, { 1, 2 },
    { 1 })
  luaunit.assertStrContains(plot.text({ 1, 2 }, { a = { 1, 2 }, b = { 3, 3 } }),
    "* a   o b")
end

--- A program that interrupts itself: exactly where the test wants it.
local RECV = "nccl.group(function() c[1]:recv(b, 1, s) end) "
local INTERRUPTED = {
  { "loop", "while true do end" },
  { "caught", "while true do pcall(function() while true do end end) end" },
  { "coroutine", "coroutine.wrap(function() while true do end end)()" },
  { "program", "process.run({ 'sleep', '50' })" },
  { "hang", RECV .. "s:sync()" },
  { "hang of a buffer", RECV .. "b:get(1)" },
  { "hang of a copy", RECV .. "b:copy_from({1,2},s)" },
  { "hang of a device", RECV .. "cuda.synchronize()" },
  { "close in a hang", RECV .. "c[1]:close()" },
}

function TestRepl.test_interrupts()
  local SETUP = "c = nccl.init_all(2) s = cuda.stream() b = cuda.buffer('f32', 2) "
  local KILLER = "k = process.spawn({'sh', '-c', 'sleep 0.8; kill -INT $PPID'}, {}) "
  for _, case in ipairs(INTERRUPTED) do
    local is_hang = case[1]:find("hang")
    local before = is_hang and KILLER .. SETUP or KILLER
    local out, err = session(before .. case[2] .. "\nprint('on')\n")
    luaunit.assertEquals(out, "on\n", case[1] .. ": " .. err)
    luaunit.assertStrContains(err, "interrupted", false, case[1])
    if is_hang then luaunit.assertStrContains(err, "comm:abort()", false, case[1]) end
  end
end
