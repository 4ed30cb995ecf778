--- nclua calibrate: the fit, the file, and that the backend chooses by it.
local calibrate = require("nclua.calibrate")
local files = require("nclua.files")
local fit = require("nclua.calibrate.fit")
local luaunit = require("luaunit")
local nccl_log = require("nclua.parse.nccl_log")
local process = require("nclua.process")
local scratch = require("scratch")

local eq, near = luaunit.assertEquals, luaunit.assertAlmostEquals

local function nclua(argv, env)
  return assert(process.run({ os.getenv("NCLUA"), table.unpack(argv) },
    { env = env, unset = { "NCCL_*" }, timeout_s = 120 }))
end

TestCalibrate = {}

function TestCalibrate.test_fit()
  local exact = fit.line({ [8] = 2 + 8 / 5000, [65536] = 2 + 65536 / 5000 })
  near(exact.latency_us, 2, 1e-6)
  near(exact.bandwidth_gbps, 5, 1e-6)
  near(exact.error_percent, 0, 1e-6)
  local times = {}
  for i, bytes in ipairs({ 8, 1024, 8192, 65536, 1 << 20 }) do
    times[bytes] = (3 + bytes / 8000) * (i % 2 == 0 and 1.1 or 0.9)
  end
  local noisy = fit.line(times)
  near(noisy.latency_us, 3, 0.6)
  near(noisy.bandwidth_gbps, 8, 1.6)
  luaunit.assertTrue(noisy.error_percent > 2 and noisy.error_percent < 15)
end

-- Times that make no sense still give figures that the backend takes.
function TestCalibrate.test_fit_of_noise()
  local cases = { { [8] = 9, [1024] = 3 }, { [8] = 0.01, [1024] = 30, [4096] = 31 } }
  for _, times in ipairs(cases) do
    local line = fit.line(times)
    luaunit.assertTrue(line.latency_us > 0 and line.bandwidth_gbps > 0)
  end
end

local CELLS = {
  { algorithm = "Ring", protocol = "LL", base_us = 1, hop_us = 2, bandwidth_gbps = 4,
    shared_hop_us = 2, shared_bandwidth_gbps = 4 },
  { algorithm = "Ring", protocol = "Simple", base_us = 10, hop_us = 20, bandwidth_gbps = 40,
    shared_hop_us = 20, shared_bandwidth_gbps = 40 },
}

local ONE_CHANNEL = [[
local cuda, nccl = require("nclua.cuda"), require("nclua.nccl")
local comms = assert(nccl.init_all(2))
for _, bytes in ipairs({ 4096, 1 << 20 }) do
  local list = {}
  nccl.group(function()
    for i, comm in ipairs(comms) do
      cuda.set_device(i - 1)
      list[i] = assert(cuda.buffer("u8", bytes)):fill(1)
      comm:all_reduce(list[i], list[i], "max")
    end
  end)
end
for _, comm in ipairs(comms) do comm:close() end
print("date " .. nccl.info().calibration_date)
]]

local function log_with(path, env)
  env = env or {}
  env.NCLUA_CPU_CONSTANTS = path
  env.NCCL_DEBUG, env.NCCL_DEBUG_SUBSYS = "INFO", "INIT,TUNING"
  env.NCCL_ALGO, env.NCCL_PROTO, env.NCCL_MAX_NCHANNELS = "ring", "^ll128", "1"
  local result = nclua({ "-e", ONE_CHANNEL }, env)
  eq(result.exit_code, 0, result.stderr)
  return result.stdout
end

function TestCalibrate.test_the_backend_chooses_by_the_file()
  local folder <close> = scratch.folder()
  local path = folder.path .. "/deep/figures.conf"
  local text = calibrate.text(CELLS, { date = "2026-02-03", cpu = "X", cores = 2 })
  assert(calibrate.write(path, text))
  local out = log_with(path)
  luaunit.assertStrContains(out, "date 2026-02-03\n")
  local log = nccl_log.parse(out)
  local ring = log.communicators[1].tuning.all_reduce.Ring
  -- 2 (n - 1) steps; where the two ranks share one core, as many turns again.
  local turns = ring.LL.latency_us > 6 and 2 or 1
  near(ring.LL.latency_us, 1 + turns * 2 * 2, 0.051)
  near(ring.Simple.latency_us, 10 + turns * 2 * 20, 0.051)
  near(ring.Simple.bandwidth_gbps * turns, 40, 0.11)
  eq({ log.selections[1].protocol, log.selections[2].protocol }, { "LL", "Simple" })
end

function TestCalibrate.test_a_wrong_file_is_told_and_left_alone()
  local folder <close> = scratch.folder()
  local path = folder.path .. "/figures.conf"
  for _, line in ipairs({ "Ring LL 1 2 3 4", "Star LL 1 2 3 4 5", "Ring LL nan 1 1 1 1",
    "Ring LL 1 1 0 1 1", "Ring LL 1 1 1 1 0", "Ring LL -1 1 1 1 1", "hello" }) do
    assert(files.write(path, "# x\n" .. line .. "\n"))
    local out = log_with(path)
    luaunit.assertStrContains(out, path .. ":2: not a line of nclua calibrate\n")
    luaunit.assertStrContains(out, "date shipped\n")
  end
  luaunit.assertStrContains(log_with(folder.path .. "/none.conf"), "date shipped\n")
  luaunit.assertStrContains(log_with("none"), "date shipped\n")
end

function TestCalibrate.test_command()
  local folder <close> = scratch.folder()
  local env = { XDG_CONFIG_HOME = folder.path }
  local dry = nclua({ "calibrate", "--rounds", "1", "--dry-run" }, env)
  eq(dry.exit_code, 0, dry.stderr)
  eq(files.exists(folder.path .. "/nclua"), false)
  local result = nclua({ "calibrate", "--rounds", "2" }, env)
  eq(result.exit_code, 0, result.stderr)
  for _, name in ipairs({ "Ring *LL ", "Ring *LL128", "Ring *Simple", "Tree *LL ",
    "Tree *LL128", "Tree *Simple", "PAT *Simple" }) do
    luaunit.assertStrMatches(result.stdout, ".*\n" .. name .. ".*")
  end
  local path = result.stdout:match("kept in ([^\n]+)")
  luaunit.assertStrContains(path, folder.path .. "/nclua/cpu-")
  local told = nclua({ "-e", "print(require('nclua.nccl').info().calibration_date, "
    .. "require('nclua.nccl').info().calibration_file)" }, env)
  eq(told.stdout, os.date("%Y-%m-%d") .. "\t" .. path .. "\n")
end

function TestCalibrate.test_only_for_the_cpu()
  local result = nclua({ "--backend", "cuda", "calibrate" }, {})
  eq(result.exit_code, 1)
  luaunit.assertStrContains(result.stderr, "only the CPU backend has figures")
end
