--- nccl-tests' own program through the same options: its rows come into the same tables.
local collectives = require("perf.collectives")
local cuda = require("nclua.cuda")
local lfs = require("lfs")
local parser = require("nclua.parse.nccl_tests")
local process = require("nclua.process")
local programs = require("nclua.programs")
local worker = require("perf.worker")

local external = {}

-- A folder holds NAME_perf for each collective.
local function program(path, collective)
  if lfs.attributes(path, "mode") == "directory" then
    path = ("%s/%s_perf"):format(path, collective.program)
  end
  local found = programs.find(path)
  if found then return found end
  error(("--nccl-tests: no program '%s'"):format(path), 0)
end

-- Only what differs from a default of every version is said: older ones know fewer.
local function arguments(opt, type, op, root)
  local argv = { "-b", opt.minbytes, "-e", opt.maxbytes, "-g", opt.ranks, "-n", opt.iters,
    "-w", opt.warmups, "-m", opt.agg_iters, "-c", opt.check, "-d", type.name, "-o", op,
    "-r", root, "-a", opt.average }
  local function add(flag, value)
    argv[#argv + 1], argv[#argv + 2] = flag, value
  end
  add(opt.stepfactor > 1 and "-f" or "-i", opt.stepfactor > 1 and opt.stepfactor
    or opt.stepbytes)
  local others = { ["-N"] = { opt.cycles, 1 }, ["-z"] = { opt.blocking, 0 },
    ["-G"] = { opt.cudagraph, 0 }, ["-R"] = { opt.local_register, 0 },
    ["-C"] = { opt.report_cputime, 0 }, ["-x"] = { opt.cta_policy, -1 },
    ["-u"] = { opt.unalign, 0 } }
  for flag, pair in pairs(others) do
    if pair[1] ~= pair[2] then add(flag, pair[1]) end
  end
  return argv
end

-- NCCL's log would come between the pieces of a row, if the user has asked for one.
local function environment(run)
  if (os.getenv("NCCL_DEBUG") or "") == "" then return {} end
  return { NCCL_DEBUG_FILE = run:path("raw/nccl/nccl_tests_%h_%p.log") }
end

local function start(run, opt, argv)
  local env = environment(run)
  run:command(table.concat(argv, " "), env)
  local limit_s = opt.timeout < 1e6 and 600 or nil
  local done, message =
    process.run(argv, { env = env, stderr = "merge", timeout_s = limit_s })
  if not done then error(("%s: %s"):format(argv[1], message), 0) end
  run:write(("raw/nccl_tests_%d.stdout"):format(#run.commands), done.stdout)
  return done
end

local PLACES = { out = "out_of_place", ["in"] = "in_place" }

-- Times as it merged them: one row stands for all ranks.
local function rows_of(opt, collective, row)
  local list = {}
  for place, field in pairs(PLACES) do
    local half = row[field]
    local us = half and (half.time_us or half.cputime_us)
    if us then
      local is_latency = opt.blocking > 0 and opt.agg_iters == 1 and opt.cudagraph == 0
      list[#list + 1] = { collective = collective.name, type = row.type,
        redop = row.redop or "none", root = row.root or -1, place = place, rank = 0,
        requested_bytes = row.size_bytes, size_bytes = row.size_bytes, count = row.count,
        cycle = row.cycle, run_cycle = row.cycle, pass = 1, stop = "nccl-tests",
        throughput_us = not is_latency and us or nil, latency_us = is_latency and us or nil,
        host_us = half.cputime_us, wrong = half.wrong, world_size = opt.ranks }
    end
  end
  return list
end

local function contract(row)
  return { section = "perf", case = worker.case_name(row), cycle = row.run_cycle, rank = 0,
    world_size = row.world_size, correct = row.wrong == 0, check = "no wrong element" }
end

---Runs the program for each type, operator and root.
---@param run run
---@param opt table
---@param collect perf.collector
function external.measure(run, opt, collect)
  if cuda.backend() ~= "cuda" and not opt.nccl_tests:find("/") then
    error("--nccl-tests: its programs need GPUs; give a path to try nonetheless", 0)
  end
  for _, name in ipairs(opt.collectives) do
    local collective = collectives[name]
    local path = program(opt.nccl_tests, collective)
    for _, type in ipairs(opt.types) do
      for _, op in ipairs(opt.ops) do
        for _, root in ipairs(opt.roots) do
          local argv = arguments(opt, type, op, root)
          table.insert(argv, 1, path)
          external.read(run, collective, start(run, opt, argv), collect)
        end
      end
    end
  end
end

local function entries_of(opt, collective, row)
  local entries = {}
  for _, one in ipairs(rows_of(opt, collective, row)) do
    entries[#entries + 1] = { rank = 0, section = "perf", row = one }
    if one.wrong then
      entries[#entries + 1] = { rank = 0, section = "contracts", row = contract(one) }
    end
  end
  return entries
end

---Takes over what the program has printed.
---@param run run
---@param collective perf.collective
---@param done process.result
---@param collect perf.collector
function external.read(run, collective, done, collect)
  local opt, parsed, count = collect.opt, parser.parse(done.stdout), 0
  for _, warning in ipairs(parsed.warnings) do
    run:note(("nccl-tests, line %d: %s"):format(warning.line, warning.why))
  end
  if opt.layout == "nccl-tests" then io.write(done.stdout) end
  for _, one in ipairs(parsed.runs) do
    collect.devices = one.devices
    for _, row in ipairs(one.rows) do
      count = count + 1
      collect:complete({ collective = collective.name, name = tostring(count) },
        entries_of(opt, collective, row))
    end
  end
  if count > 0 and done.ok then return end
  local status = done.exit_code or done.signal
  error(("nccl-tests failed (%s), %d rows\n%s"):format(status, count,
    done.stdout:sub(-3000)), 0)
end

return external
