local luaunit = require("luaunit")
local process = require("nclua.process")

local eq, is_true = luaunit.assertEquals, luaunit.assertTrue

local function sh(script, options)
  return assert(process.run({ "/bin/sh", "-c", script }, options))
end

--- Is the process gone (a zombie counts as there)?
local function is_gone(pid)
  return not sh("test -e /proc/" .. pid).ok
end

local function wait_until(condition, what)
  for _ = 1, 200 do
    if condition() then return end
    process.run({ "sleep", "0.02" })
  end
  error("never: " .. what, 2)
end

-- Once the shell has read its input, spawn() has closed the child's ends here.
local function count_descriptors()
  return sh("read go; ls /proc/$PPID/fd | wc -l", { stdin = "go\n" }).stdout
end

TestProcess = {}

function TestProcess:setUp()
  self.descriptors = count_descriptors()
end

function TestProcess:tearDown()
  collectgarbage()
  eq(count_descriptors(), self.descriptors, "descriptors leak")
  local zombies = sh("ps -o stat= --ppid $PPID | grep -c Z").stdout
  eq(zombies, "0\n", "zombies remain")
end

function TestProcess.test_exit_and_output()
  local got = sh("printf out; printf err >&2; exit 3")
  eq({ got.ok, got.exit_code, got.signal, got.timed_out }, { false, 3, nil, false })
  eq({ got.stdout, got.stderr }, { "out", "err" })
  is_true(sh("true").ok)
end

function TestProcess.test_signal()
  local got = sh("kill -9 $$")
  eq({ got.ok, got.exit_code, got.signal }, { false, nil, "SIGKILL" })
end

function TestProcess.test_argv_is_not_a_shells()
  local got = assert(process.run({ "printf", "%s|", "a b", "$HOME", "*", "", "'", 7 }))
  eq(got.stdout, "a b|$HOME|*||'|7|")
end

function TestProcess.test_a_script_without_magic_number_is_refused()
  local path = os.tmpname()
  local file <close> = assert(io.open(path, "w"))
  file:write("echo from a shell\n")
  file:close()
  sh("chmod +x " .. path)
  local got, _, code = process.run({ path })
  os.remove(path)
  eq({ got, code }, { nil, "ENOEXEC" })
end

function TestProcess.test_failures_to_start()
  local CASES = {
    { { "no-such-program" }, {}, "ENOENT", "cannot run 'no%-such%-program'" },
    { { "/no/such/program" }, {}, "ENOENT", "'/no/such/program'" },
    { { "/etc/passwd" }, {}, "EACCES", "'/etc/passwd'" },
    { { "true" }, { cwd = "/no/such/folder" }, "ENOENT", "enter '/no/such/folder'" },
    { { "true" }, { stdout = { file = "/no/such/file" } }, "ENOENT", "/no/such/file" },
    { { "true" }, { affinity = { 100000 } }, "EINVAL", "no CPU 100000" },
  }
  for _, case in ipairs(CASES) do
    local got, message, code = process.run(case[1], case[2])
    eq({ got, code }, { nil, case[3] })
    luaunit.assertStrMatches(message, ".*" .. case[4] .. ".*")
  end
end

function TestProcess.test_wrong_arguments_raise()
  local CASES = {
    { {}, nil, "the command is empty" },
    { { "" }, nil, "name is empty" },
    { { true }, nil, "expected a string or a number, got boolean" },
    { { "a\0b" }, nil, "NUL" },
    { { "true" }, { timeout = 1 }, "unknown option 'timeout'.*timeout_s" },
    { { "true" }, { stdout = "merge" }, "option 'stdout'.*got merge" },
    { { "true" }, { stderr = 1 }, "option 'stderr'" },
    { { "true" }, { stdin = 1 }, "option 'stdin'" },
    { { "true" }, { timeout_s = 0 }, "timeout_s" },
    { { "true" }, { timeout_s = 0 / 0 }, "timeout_s" },
    { { "true" }, { env = { ["A=B"] = 1 } }, "'A=B' cannot be the name" },
    { { "true" }, { env = { A = true } }, "'env': A: expected" },
    { { "true" }, { env = { "x" } }, "a name is no string" },
    { { "true" }, { affinity = { 0.5 } }, "affinity" },
    { { "true" }, { affinity = {} }, "affinity" },
    { { "true" }, { on_line = print, stdout = "null", stderr = "null" }, "on_line" },
  }
  for i, case in ipairs(CASES) do
    local ok, message = pcall(process.run, case[1], case[2])
    is_true(not ok, "case " .. i)
    luaunit.assertStrMatches(message, ".*" .. case[3] .. ".*")
  end
end

function TestProcess.test_environment()
  local base = { env = { NCLUA_T_A = "1", NCLUA_T_B = "2", OTHER = "3" }, clean = true }
  local inner = [[
    local p = require("nclua.process")
    local got = assert(p.run({ "/usr/bin/env" },
      { unset = { "NCLUA_T_*", "X" }, env = { NCLUA_T_B = "new", N = 5 } }))
    io.write(got.stdout)]]
  local got = assert(process.run({ os.getenv("NCLUA"), "-e", inner }, base))
  eq(got.stderr, "")
  local lines = {}
  for line in got.stdout:gmatch("[^\n]+") do lines[#lines + 1] = line end
  table.sort(lines)
  eq(lines, { "N=5", "NCLUA_T_B=new", "OTHER=3" })
  eq(assert(process.run({ "env" }, { clean = true })).stdout, "")
end

function TestProcess.test_cwd()
  eq(sh("pwd", { cwd = "/usr" }).stdout, "/usr\n")
end

function TestProcess.test_large_stdin_and_both_outputs()
  local text = ("0123456789abcde\n"):rep(256 * 1024)
  local got = sh("tee /dev/stderr", { stdin = text })
  is_true(got.stdout == text, "stdout differs")
  is_true(got.stderr == text, "stderr differs")
end

function TestProcess.test_stdin_nobody_reads()
  is_true(sh("exec 0<&-; true", { stdin = ("x"):rep(1 << 20) }).ok)
  eq(sh("cat").stdout, "")
end

function TestProcess.test_nul_bytes()
  eq(sh("cat", { stdin = "a\0b\n\0" }).stdout, "a\0b\n\0")
end

function TestProcess.test_lines()
  local seen = {}
  local got = sh("printf 'a\\n\\nb\\0c\\nlast'; printf 'e\\n' >&2", {
    on_line = function(line, stream) seen[#seen + 1] = stream .. ":" .. line end,
  })
  table.sort(seen)
  eq(seen, { "stderr:e", "stdout:", "stdout:a", "stdout:b\0c", "stdout:last" })
  eq(got.stdout, "a\n\nb\0c\nlast")
end

function TestProcess.test_lines_come_while_the_child_runs()
  local path = os.tmpname()
  os.remove(path)
  local got = sh("echo go; while ! test -e " .. path .. "; do sleep 0.01; done; echo end", {
    timeout_s = 10,
    on_line = function(line)
      if line == "go" then assert(io.open(path, "w")):close() end
    end,
  })
  os.remove(path)
  eq({ got.ok, got.stdout }, { true, "go\nend\n" })
end

function TestProcess.test_many_lines()
  local count = 0
  sh("seq 1 200000", { on_line = function(line)
    count = count + 1
    assert(line == tostring(count))
  end })
  eq(count, 200000)
end

function TestProcess.test_error_in_on_line_kills_and_reaps()
  local pid
  local ok, message = pcall(sh, "echo $$; exec sleep 60", {
    on_line = function(line)
      pid = line
      error("no more")
    end,
  })
  is_true(not ok)
  luaunit.assertStrMatches(message, ".*test_process.lua:%d+: no more")
  is_true(is_gone(pid), "the child is still there")
end

function TestProcess.test_sinks()
  local path = os.tmpname()
  local got = sh("echo out; echo err >&2", { stdout = { file = path }, stderr = "null" })
  eq({ got.stdout, got.stderr }, { "", "" })
  local file <close> = assert(io.open(path))
  eq(file:read("a"), "out\n")
  os.remove(path)
  eq(sh("echo a; echo b >&2; echo c", { stderr = "merge" }).stdout, "a\nb\nc\n")
  local inner = [[require("nclua.process").run({ "echo", "hi" }, { stdout = "inherit" })]]
  eq(assert(process.run({ os.getenv("NCLUA"), "-e", inner })).stdout, "hi\n")
end

function TestProcess.test_timeout_terminates()
  local got = sh("exec sleep 60", { timeout_s = 0.1 })
  eq({ got.ok, got.timed_out, got.signal }, { false, true, "SIGTERM" })
  is_true(got.wall_us < 2000000)
end

function TestProcess.test_timeout_kills_who_ignores_it()
  local got = sh("trap '' TERM; while :; do sleep 0.05; done",
    { timeout_s = 0.1, grace_s = 0.2 })
  eq({ got.timed_out, got.signal }, { true, "SIGKILL" })
  is_true(got.wall_us >= 300000 and got.wall_us < 3000000)
end

function TestProcess.test_timeout_ends_grandchildren()
  local got = sh("(trap '' TERM; exec sleep 60) & echo $!; wait", { timeout_s = 0.3 })
  local pid = got.stdout:match("%d+")
  is_true(got.timed_out)
  wait_until(function() return is_gone(pid) end, "the grandchild is gone")
end

function TestProcess.test_grandchild_holding_the_pipe_is_not_waited_for()
  local got = sh("sleep 30 & echo $!")
  is_true(got.ok)
  is_true(got.wall_us < 5000000)
  process.run({ "kill", got.stdout:match("%d+") })
end

function TestProcess.test_usage()
  local got = sh("i=0; while [ $i -lt 100000 ]; do i=$((i+1)); done")
  is_true(got.user_us > 1000 and got.user_us < 30000000)
  is_true(got.wall_us >= got.user_us // 4)
  is_true(got.max_rss_bytes > 100000)
  is_true(sh("true").user_us < got.user_us)
end

function TestProcess.test_affinity()
  local got = sh("grep Cpus_allowed_list /proc/self/status", { affinity = { 0 } })
  luaunit.assertStrContains(got.stdout, "\t0\n")
end

function TestProcess.test_open_files_are_not_handed_down()
  local file <close> = assert(io.open("/etc/passwd"))
  local _ = file
  eq(sh("ls /proc/self/fd | wc -l").stdout:match("%d+"), "4") -- 0, 1, 2 and ls's own
end

function TestProcess.test_signals_are_reset()
  local status = sh("grep -E 'Sig(Blk|Ign)' /proc/self/status").stdout
  local count = 0
  for mask in status:gmatch("\t(%x+)") do
    eq(tonumber(mask, 16), 0, status)
    count = count + 1
  end
  eq(count, 2)
end

function TestProcess.test_spawn_poll_wait_kill()
  local p <close> = assert(process.spawn({ "cat" }, { stdin = "hello" }))
  is_true(math.type(p.pid) == "integer" and p.pid > 1)
  eq(p:wait().stdout, "hello")
  eq(p:poll().stdout, "hello")
  eq(p:kill(), false)
  local q <close> = assert(process.spawn({ "sleep", "60" }))
  eq(q:poll(), nil)
  local got, _, code = q:wait(0.01)
  eq({ got, code }, { nil, "ETIMEDOUT" })
  eq(q:kill("KILL"), true)
  eq(q:wait().signal, "SIGKILL")
end

function TestProcess.test_collected_while_running()
  local p = assert(process.spawn({ "sleep", "60" }))
  local pid = p.pid
  p = nil -- luacheck: ignore 311
  collectgarbage()
  is_true(is_gone(pid))
end

function TestProcess.test_closed()
  local p = assert(process.spawn({ "sleep", "60" }))
  local pid = p.pid
  p:close()
  p:close()
  is_true(is_gone(pid))
  for _, name in ipairs({ "wait", "poll", "kill" }) do
    luaunit.assertErrorMsgContains("attempt to use a closed process", p[name], p)
  end
  luaunit.assertErrorMsgContains("closed", function() return p.pid end)
  eq(tostring(p), "process.handle (closed)")
  luaunit.assertErrorMsgContains("process.handle expected", p.wait, {})
end

function TestProcess.test_on_line_may_close_and_wait()
  local p
  p = assert(process.spawn({ "seq", "1", "1000" }, { on_line = function() p:close() end }))
  luaunit.assertErrorMsgContains("closed process", p.wait, p)
  local count = 0
  p = assert(process.spawn({ "seq", "1", "100" }, {
    on_line = function()
      count = count + 1
      p:poll()
    end,
  }))
  is_true(p:wait().ok)
  eq(count, 100)
  p:close()
end

function TestProcess.test_interrupt()
  local inner = [[require("nclua.process").run({ "sleep", "60" })]]
  local p <close> = assert(process.spawn({ os.getenv("NCLUA"), "-e", inner }))
  wait_until(function()
    local f <close> = assert(io.open(("/proc/%d/task/%d/children"):format(p.pid, p.pid)))
    return f:read("a") ~= ""
  end, "the inner child runs")
  p:kill("INT")
  local got = assert(p:wait(10))
  eq(got.exit_code, 1)
  luaunit.assertStrContains(got.stderr, "interrupted")
end
