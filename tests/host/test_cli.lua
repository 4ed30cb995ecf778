--- The program's own options, errors and exit statuses, as a user meets them.
local luaunit = require("luaunit")
local process = require("nclua.process")

local NCLUA = assert(os.getenv("NCLUA"), "NCLUA must name the program under test")

local function run(args, opts)
  return assert(process.run({ NCLUA, table.unpack(args) }, opts))
end

local function in_file(text)
  local path = os.tmpname()
  local file <close> = assert(io.open(path, "w"))
  file:write(text)
  return path
end

local SHOW_BACKEND = "print(require('nclua.cuda').backend())"
local FINALIZED = "x = setmetatable({}, { __gc = function() print('gc') end })"

-- Arguments, standard input, exit status, pattern of stdout, pattern of stderr.
local CASES = {
  { { "-e", "print(1 + 1)" }, nil, 0, "^2\n$", "^$" },
  { { "-eprint(7)" }, nil, 0, "^7\n$", "^$" },
  { { "-e", "x = 5", "-e", "print(x)" }, nil, 0, "^5\n$", "^$" },
  { { "-v" }, nil, 0, "^nclua %d+%.%d+%.%d+  Lua 5%.4%.%d\n$", "^$" },
  { { "--version" }, nil, 0, "^nclua ", "^$" },
  { { "--help" }, nil, 0, "exit status: 0 success, 1 .* failed, 2 wrong usage", "^$" },
  { { "-" }, "print(arg[0], ...)", 0, "^-\n$", "^$" },
  { { "-", "a", "b" }, "print(...)", 0, "^a\tb\n$", "^$" },
  { {}, "print('from stdin')", 0, "^from stdin\n$", "^$" },
  { { "-i" }, "1 + 1\nx = {\n3}\n=x[1]\n", 0, "2\n3\n", "^$" },
  { { "-i" }, "error('a')\nprint('on')\n", 0, "on\n", "^nclua: stdin:1: a\n$" },
  { { "-l", "nclua.none" }, nil, 1, "^$", "^nclua: module 'nclua.none' not found" },
  { { "-l", "s=string", "-e", "print(s.rep('x', 3))" }, nil, 0, "^xxx\n$", "^$" },
  { { "-W", "-e", "warn('careful')" }, nil, 0, "^$", "Lua warning: careful" },
  { { "-e", "warn('careful')" }, nil, 0, "^$", "^$" },
  { { "-e", "error('boom')" }, nil, 1, "^$", "^nclua: %(command line%):1: boom\n$" },
  { { "-e", "error({})" }, nil, 1, "^$", "^nclua: table: 0x%x+\n$" },
  { { "-e", "local =" }, nil, 1, "^$", "^nclua: %(command line%):1: <name> expected" },
  { { "--traceback", "-e", "error('boom')" }, nil, 1, "^$", "stack traceback:" },
  { { "-e", "os.exit(3)" }, nil, 3, "^$", "^$" },
  { { "-e", FINALIZED .. " os.exit()" }, nil, 0, "^gc\n$", "^$" },
  { { "-x" }, nil, 2, "^$", "^nclua: unrecognized option '%-x' %(try %-%-help%)\n$" },
  { { "-e" }, nil, 2, "^$", "^nclua: '%-e' needs an argument\n$" },
  { { "--backend" }, nil, 2, "^$", "^nclua: '%-%-backend' needs a value\n$" },
  { { "--backend", "tpu" }, nil, 2, "^$", "unknown backend 'tpu': expected 'auto', 'cpu'" },
  { { "--backend=cpu", "-e", SHOW_BACKEND }, nil, 0, "^cpu\n$", "^$" },
  { { "nosuch" }, nil, 1, "^$", "cannot open 'nosuch': no such file, chapter or command" },
  { { "--", "nosuch" }, nil, 1, "^$", "cannot open 'nosuch'" },
}

TestCli = {}

function TestCli.test_cases()
  for _, case in ipairs(CASES) do
    local args, stdin, status, out, err = table.unpack(case, 1, 5)
    local result = run(args, { stdin = stdin or "" })
    local what = table.concat(args, " ") .. "\n" .. result.stdout .. result.stderr
    luaunit.assertEquals(result.exit_code, status, what)
    luaunit.assertNotNil(result.stdout:find(out), what)
    luaunit.assertNotNil(result.stderr:find(err or ""), what)
  end
end

function TestCli.test_script_arguments_as_in_lua()
  local path = in_file("print(#arg, arg[0] ~= nil, arg[1], arg[2], arg[-1], ...)")
  local result = run({ "-e", "x=1", path, "one", "--two" })
  os.remove(path)
  luaunit.assertEquals(result.stdout, "2\ttrue\tone\t--two\tx=1\tone\t--two\n")
end

function TestCli.test_environment()
  local env = { LUA_INIT = "print('init')" }
  luaunit.assertEquals(run({ "-e", "print(1)" }, { env = env }).stdout, "init\n1\n")
  luaunit.assertEquals(run({ "-E", "-e", "print(1)" }, { env = env }).stdout, "1\n")
  local bad = run({ "-e", "" }, { env = { NCLUA_BACKEND = "tpu" } })
  luaunit.assertEquals(bad.exit_code, 2)
  local ignored = run({ "-E", "-e", "" }, { env = { NCLUA_BACKEND = "tpu" } })
  luaunit.assertEquals(ignored.exit_code, 0)
end

function TestCli.test_bytecode_is_refused()
  local path = in_file(string.dump(load("print(1)")))
  local result = run({ path })
  os.remove(path)
  luaunit.assertEquals(result.exit_code, 1)
  luaunit.assertStrContains(result.stderr, "attempt to load a binary chunk")
end

function TestCli.test_doctor()
  local cjson = require("cjson")
  local text = run({ "doctor" })
  luaunit.assertEquals(text.exit_code, 0, text.stderr)
  luaunit.assertStrContains(text.stdout, "+ backend          cpu, 8 devices")
  local facts = cjson.decode(run({ "doctor", "--json" }).stdout)
  luaunit.assertEquals(facts.backend, "cpu")
  luaunit.assertEquals(facts.devices, 8)
  local bad = run({ "doctor", "--foo" })
  luaunit.assertEquals(bad.exit_code, 2)
  luaunit.assertStrContains(bad.stderr, "nclua doctor: unknown option '--foo'")
  luaunit.assertEquals(run({ "doctor", "--help" }).exit_code, 0)
end
