--- A script from somebody else: attempts to leave the sandbox, each by a program of its
--- own, and each looked at from outside. Those marked "kernel" would be stopped by the
--- kernel alone as well (test_sandbox_kernel.c tries that); the others are stopped in the
--- Lua state and by the checks in front of it.
local lfs = require("lfs")
local luaunit = require("luaunit")
local process = require("nclua.process")
local sandbox = require("nclua.sandbox")
local scratch = require("scratch")

local NCLUA = assert(os.getenv("NCLUA"), "NCLUA must name the program under test")

-- The leak checker stops its process by ptrace, which is refused: it is off in there.
local ENV = { NCLUA_BACKEND = "cpu", ASAN_OPTIONS = "detect_leaks=0" }

local function write(path, text)
  local file <close> = assert(io.open(path, "wb"))
  file:write(text)
end

local function read(path)
  local file <close> = io.open(path, "rb")
  return file and file:read("a")
end

--- TOP/project with the script, TOP/project/run to write in, TOP/secret beside them.
local function world(folder)
  local top = folder.path
  assert(lfs.mkdir(top .. "/project"))
  assert(lfs.mkdir(top .. "/project/run"))
  write(top .. "/secret", "secret")
  write(top .. "/project/data", "data")
  write(top .. "/project/run/mine", "mine")
  write(top .. "/project/run/native.so", read(NCLUA):sub(1, 4096))
  write(top .. "/project/bytecode.lua", string.dump(function() return 1 end))
  assert(lfs.link(top .. "/secret", top .. "/project/run/link", true))
  assert(lfs.link(top .. "/fresh", top .. "/project/run/dangling", true))
  assert(lfs.touch(top .. "/secret", 1000000))
  return top
end

local function confined(top, code, options, prefix)
  write(top .. "/project/script.lua", "local TOP = ...\n" .. code)
  local argv = { prefix or NCLUA, "--sandbox", "--sandbox-dir", "run" }
  if prefix then table.insert(argv, 2, NCLUA) end
  for _, option in ipairs(options or {}) do argv[#argv + 1] = option end
  for _, word in ipairs({ "script.lua", top }) do argv[#argv + 1] = word end
  return assert(process.run(argv, { cwd = top .. "/project", env = ENV, timeout_s = 60 }))
end

-- Name, "kernel" or "lua", what the script returns or raises, pattern of the refusal.
local ATTEMPTS = {
  { "io.open", "kernel", "return io.open(TOP .. '/fresh', 'w')", "may not be written" },
  { "io.open to append", "kernel", "return io.open(TOP .. '/secret', 'a')",
    "may not be written" },
  { "io.open to update", "kernel", "return io.open(TOP .. '/secret', 'r+')",
    "may not be written" },
  { "io.output", "kernel", "return io.output(TOP .. '/fresh')", "may not be written" },
  { "dots", "kernel", "return io.open('run/../../fresh', 'w')", "may not be written" },
  { "the project's own files", "kernel", "return io.open('data', 'w')",
    "may not be written" },
  { "symbolic link", "kernel", "return io.open('run/link', 'w')", "may not be written" },
  { "dangling link", "kernel", "return io.open('run/dangling', 'w')",
    "may not be written" },
  { "read outside", "kernel", "return io.open(TOP .. '/secret')", "may not be read" },
  { "io.lines outside", "kernel", "return io.lines(TOP .. '/secret')", "may not be read" },
  { "read by a link", "kernel", "return io.open('run/link')", "may not be read" },
  { "/proc/self/mem", "kernel", "return io.open('/proc/self/mem', 'r+')",
    "may not be written" },
  { "/proc/self/cwd", "kernel", "return io.open('/proc/self/cwd/../fresh', 'w')",
    "may not be written" },
  { "/proc/self/root", "kernel",
    "return io.open('/proc/self/root' .. TOP .. '/fresh', 'w')", "may not be written" },
  { "a device", "kernel", "return io.open('/dev/ptmx')", "may not be read" },
  { "shared memory", "kernel", "return io.open('/dev/shm/fresh', 'w')",
    "may not be written" },
  { "an open descriptor", "kernel", "return io.open('/proc/self/fd/1', 'w')",
    "may not be written" },
  { "os.rename out", "kernel", "return os.rename('run/mine', TOP .. '/fresh')",
    "may not be written" },
  { "os.rename in", "kernel", "return os.rename(TOP .. '/secret', 'run/stolen')",
    "may not be written" },
  { "os.remove", "kernel", "return os.remove(TOP .. '/secret')", "may not be written" },
  { "os.execute", "kernel", "return os.execute('touch ' .. TOP .. '/fresh')",
    "os%.execute is not available" },
  { "io.popen", "kernel", "return io.popen('touch ' .. TOP .. '/fresh')",
    "io%.popen is not available" },
  { "os.tmpname", "kernel", "return os.tmpname()", "os%.tmpname is not available" },
  { "io.tmpfile", "kernel", "return io.tmpfile()", "io%.tmpfile is not available" },
  { "process.run", "kernel",
    "return require('nclua.process').run({ 'touch', TOP .. '/fresh' })",
    "may not be started" },
  { "process.spawn of itself", "kernel",
    "return require('nclua.process').spawn({ '/proc/self/exe', '-e', '' })",
    "may not be started" },
  { "the loader as a program", "lua", "return require('nclua.process').run("
    .. "{ '/lib64/ld-linux-x86-64.so.2', '/bin/touch', TOP .. '/fresh' })",
    "may not be started" },
  { "package.loadlib", "kernel",
    "return package.loadlib(TOP .. '/project/run/native.so', '*')",
    "package%.loadlib is not available" },
  { "require of a C module", "kernel",
    "package.cpath = TOP .. '/project/run/?.so' return require('native')",
    "module 'native' not found" },
  { "tuner.open", "kernel",
    "return require('nclua.tuner').open(TOP .. '/project/run/native.so')",
    "no code may be loaded" },
  { "load of bytecode", "lua", "return load('\\27Lua')", "binary chunk" },
  { "load with mode b", "lua", "return load('\\27Lua', 'x', 'b')", "only text" },
  { "loadfile of bytecode", "lua", "return loadfile('bytecode.lua', 'bt')",
    "binary chunk" },
  { "dofile of bytecode", "lua", "return dofile('bytecode.lua')", "binary chunk" },
  { "require of bytecode", "lua",
    "package.path = './?.lua' return require('bytecode')", "binary chunk" },
  { "string.dump", "lua", "return string.dump(print)", "string%.dump is not available" },
  { "string.dump as a method", "lua", "return (''):dump()", "is not available" },
  { "debug.getregistry", "lua", "return debug.getregistry()", "is not available" },
  { "debug.setmetatable", "lua", "return debug.setmetatable(1, {})", "is not available" },
  { "debug.setupvalue", "lua", "return debug.setupvalue(io.open, 1, print)",
    "is not available" },
  { "debug.getupvalue", "lua", "return debug.getupvalue(io.open, 1)",
    "is not available" },
  { "debug.sethook", "lua", "return debug.sethook(print, 'c')", "is not available" },
  { "debug.getlocal", "lua", "return debug.getlocal(1, 1)", "is not available" },
  { "a function on the stack", "lua", [[
    local found
    load(function() found = debug.getinfo(2).func or debug.getinfo(3).func end)
    return found, 'no function is given']], "no function is given" },
  { "sqlite.open", "kernel",
    "return require('nclua.sqlite').open(TOP .. '/fresh', { mode = 'rw' })",
    "may not be written" },
  { "ATTACH", "kernel", "local s = require('nclua.sqlite')\n"
    .. "local db = assert(s.open('run/a.db', { mode = 'rw' }))\n"
    .. "return db:exec(\"attach '\" .. TOP .. \"/fresh' as x; create table x.t (a)\")",
    "not authorized" },
  { "ATTACH of a URI", "kernel", "local s = require('nclua.sqlite')\n"
    .. "local db = assert(s.open(nil, { mode = 'memory' }))\n"
    .. "return db:exec(\"attach 'file:\" .. TOP .. \"/fresh' as x; create table x.t (a)\")",
    "not authorized" },
  { "VACUUM INTO", "kernel", "local s = require('nclua.sqlite')\n"
    .. "local db = assert(s.open('run/v.db', { mode = 'rw' }))\n"
    .. "assert(db:exec('create table t (a)'))\n"
    .. "return db:exec(\"vacuum into '\" .. TOP .. \"/fresh'\")",
    "authorization denied" },
  { "lines.append", "kernel",
    "return require('nclua.lines').append(TOP .. '/secret', 'x')", "may not be written" },
  { "lfs.mkdir", "kernel", "return require('lfs').mkdir(TOP .. '/fresh')",
    "may not be written" },
  { "lfs.rmdir", "kernel", "return require('lfs').rmdir(TOP .. '/project')",
    "may not be written" },
  { "lfs.touch", "kernel", "return require('lfs').touch(TOP .. '/secret')",
    "is not available" },
  { "lfs.link", "kernel", "return require('lfs').link(TOP .. '/secret', 'run/hard')",
    "is not available" },
  { "lfs.lock_dir", "kernel", "return require('lfs').lock_dir(TOP)", "is not available" },
  { "a trace", "kernel",
    "return require('nclua.trace').start({ file = TOP .. '/fresh' })",
    "may not be written" },
  { "a plugin for ranks", "kernel", [[
    return require('nclua.ranks').run({ n = 1, fn = function() end, output = 'inherit',
      env = { NCCL_TUNER_PLUGIN = TOP .. '/project/run/native.so' } })]],
    "'NCCL_TUNER_PLUGIN' may not be set" },
  { "LD_PRELOAD for ranks", "lua", [[
    return require('nclua.ranks').run({ n = 1, fn = function() end,
      env = { LD_PRELOAD = TOP .. '/project/run/native.so' } })]],
    "'LD_PRELOAD' may not be set" },
  { "an address for ranks", "lua", [[
    return require('nclua.ranks').run({ n = 1, fn = function() end,
      env = { NCCL_COMM_ID = '192.0.2.1:9' } })]], "'NCCL_COMM_ID' may not be set" },
  { "in a rank", "kernel", [[
    return require('nclua.ranks').run({ n = 1, fn = function()
      assert(io.open(TOP .. '/fresh', 'w'))
    end })]], "may not be written" },
  { "in a coroutine", "kernel",
    "return coroutine.wrap(function() return io.open(TOP .. '/fresh', 'w') end)()",
    "may not be written" },
  { "by pcall", "kernel", "local ok, why = "
    .. "pcall(os.execute, 'touch ' .. TOP .. '/fresh') return ok, why",
    "is not available" },
  { "in a finalizer", "kernel", [[
    local ok, why
    setmetatable({}, { __gc = function() ok, why = io.open(TOP .. '/fresh', 'w') end })
    collectgarbage()
    return ok, why]], "may not be written" },
  { "with a debug library of its own", "lua",
    "package.loaded.debug = nil return require('debug')", "module 'debug' not found" },
}

local function check_untouched(top, what)
  luaunit.assertEquals(read(top .. "/secret"), "secret", what)
  luaunit.assertEquals(lfs.attributes(top .. "/secret", "modification"), 1000000, what)
  luaunit.assertEquals(read(top .. "/project/data"), "data", what)
  luaunit.assertNil(lfs.symlinkattributes(top .. "/fresh"), what)
  luaunit.assertNil(lfs.symlinkattributes(top .. "/project/run/stolen"), what)
  luaunit.assertNil(lfs.symlinkattributes(top .. "/project/run/hard"), what)
end

local function try_all(prefix)
  local folder <close> = scratch.folder()
  local top = world(folder)
  for _, attempt in ipairs(ATTEMPTS) do
    local name, _, code, pattern = table.unpack(attempt)
    local result = confined(top, ("local function try() %s end\n"
      .. "local ok, got, why = pcall(try)\n"
      .. "print(ok and got and 'ESCAPED' or 'refused', ok and why or got)"):format(code),
      nil, prefix)
    local what = name .. "\n" .. result.stdout .. result.stderr
    luaunit.assertEquals(result.exit_code, 0, what)
    luaunit.assertNotNil(result.stdout:find("^refused\t"), what)
    luaunit.assertNotNil(result.stdout:find(pattern), what)
    luaunit.assertEquals(result.stderr:find("no full guard", 1, true) ~= nil,
      prefix ~= nil or sandbox.status().landlock == 0, what)
    check_untouched(top, what)
  end
end

TestSandbox = {}

function TestSandbox.test_escapes()
  local status = sandbox.status()
  local by_kernel = 0
  for _, attempt in ipairs(ATTEMPTS) do
    by_kernel = by_kernel + (attempt[2] == "kernel" and 1 or 0)
  end
  print(("Landlock %d, seccomp %s: %d attempts, %d of which the kernel refuses too"):format(
    status.landlock, status.seccomp and "yes" or "no", #ATTEMPTS, by_kernel))
  try_all()
end

-- What the Lua state and the checks before a call are worth alone.
function TestSandbox.test_escapes_without_landlock()
  local prefix = os.getenv("WITHOUT_LANDLOCK")
  luaunit.skipIf(not prefix, "WITHOUT_LANDLOCK does not name the program")
  luaunit.skipIf(not sandbox.status().seccomp, "this kernel has no seccomp to hide it with")
  try_all(prefix)
end

local ALLOWED = [[
local file <close> = assert(io.open("run/new", "w"))
assert(file:write("x"))
assert(file:close())
assert(os.rename("run/new", "run/renamed"))
assert(require("lfs").mkdir("run/below"))
assert(io.open("data"):read("a") == "data")
assert(load("return 1")() == 1)
assert(assert(io.open("/dev/null", "w")):write("x"))
assert(io.open("/proc/cpuinfo"):read("l"))
assert(debug.getinfo(1, "S").source == "@script.lua")
assert(debug.getinfo(print, "S").what == "C")
local db = assert(require("nclua.sqlite").open("run/results.db", { mode = "rw" }))
assert(db:exec("create table t (a); attach 'run/second.db' as x; create table x.t (a)"))
db:close()
print(os.getenv("TMPDIR"))
]]

function TestSandbox.test_what_is_allowed()
  local folder <close> = scratch.folder()
  local top = world(folder)
  local result = confined(top, ALLOWED)
  luaunit.assertEquals(result.exit_code, 0, result.stderr)
  luaunit.assertEquals(result.stdout, top .. "/project/run\n")
  luaunit.assertEquals(result.stderr:match("^[^\n]*"),
    ("nclua: sandbox: writes only below %s/project/run"):format(top))
  luaunit.assertEquals(read(top .. "/project/run/renamed"), "x")
end

function TestSandbox.test_a_named_program()
  local folder <close> = scratch.folder()
  local top = world(folder)
  local code = [[
    local process = require("nclua.process")
    print(assert(process.run({ "echo", "hello" })).stdout)
    print(select(2, process.run({ "touch", TOP .. "/fresh" })))
    print(select(2, process.run({ "echo" }, { env = { LD_PRELOAD = "run/native.so" } })))
    print(select(2, process.run({ "echo" }, { stdout = { file = TOP .. "/fresh" } })))
    print(process.run({ "cp", TOP .. "/project/data", TOP .. "/fresh" }).ok)]]
  local result = confined(top, code, { "--allow-program", "echo", "--allow-program=cp" })
  luaunit.assertEquals(result.exit_code, 0, result.stderr)
  local wanted = "hello\n\nsandbox: '[^\n]*touch' may not be started, [^\n]*\n"
    .. "sandbox: 'LD_PRELOAD' may not be set[^\n]*\n"
    .. "sandbox: '[^\n]*fresh' may not be written"
  luaunit.assertNotNil(result.stdout:find(wanted), result.stdout)
  check_untouched(top, result.stdout)
  if sandbox.status().landlock > 0 then
    luaunit.assertNotNil(result.stdout:find("\nfalse\n$"), result.stdout)
  else
    print("skipped: without Landlock a named program may write anywhere")
  end
end

-- Arguments, status, pattern of standard error.
local USAGE = {
  { { "--sandbox" }, "^nclua: %-%-sandbox needs a script" },
  { { "--sandbox", "-i", "-e", "" }, "has no prompt" },
  { { "--sandbox-dir", "x", "-e", "" }, "need %-%-sandbox" },
  { { "--allow-program", "x", "-e", "" }, "need %-%-sandbox" },
  { { "--sandbox", "--allow-program", "no-such-program", "-e", "" },
    "no program 'no%-such%-program'" },
}

function TestSandbox.test_usage()
  local folder <close> = scratch.folder()
  for _, case in ipairs(USAGE) do
    local result = process.run({ NCLUA, table.unpack(case[1]) },
      { env = ENV, cwd = folder.path, stdin = "" })
    luaunit.assertEquals(result.exit_code, 2, result.stderr)
    luaunit.assertNotNil(result.stderr:find(case[2]), result.stderr)
  end
end

function TestSandbox.test_the_interview_runs_unchanged()
  local folder <close> = scratch.folder()
  local script = lfs.currentdir() .. "/scripts/interview.lua"
  for i, name in ipairs({ "interview", script }) do
    local result = process.run({ NCLUA, "--sandbox", name, "--run-id", "r" .. i, "--cycles",
      "1", "--warmups", "0", "--largest", "64K" },
      { env = ENV, cwd = folder.path, timeout_s = 200 })
    luaunit.assertEquals(result.exit_code, 0, result.stderr)
    local run = folder.path .. "/logs/interview_details/r" .. i
    luaunit.assertNotNil(read(run .. "/manifest.txt"))
    luaunit.assertNotNil(read(run .. "/results.db"))
  end
end

function TestSandbox.test_doctor_says_what_holds()
  local result = assert(process.run({ NCLUA, "doctor" }, { env = ENV }))
  local status = sandbox.status()
  local text = status.landlock > 0 and "Landlock " .. status.landlock or "no Landlock"
  luaunit.assertNotNil(result.stdout:find(text, 1, true), result.stdout)
  luaunit.assertNotNil(result.stdout:find(status.seccomp and ", seccomp" or ", no seccomp",
    1, true), result.stdout)
end
