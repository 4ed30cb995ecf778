--- nccl-tests as a control: its own program where there is one, else our measurement with
--- the same definition of time. Either way the rows have one form and say who measured.
local nccl_tests = {}

local cuda = require("nclua.cuda")
local parser = require("nclua.parse.nccl_tests")
local process = require("nclua.process")
local programs = require("nclua.programs")
local ranks = require("nclua.ranks")
local worlds = require("nclua.worlds")

local function command(program, gpus, cycles)
  return { program, "-b", "8K", "-e", "1M", "-f", "2", "-g", gpus, "-w", 20, "-n", 100,
    "-N", cycles, "-c", 1, "-d", "half", "-a", 3 }
end

-- Rank 0 speaks for all: nccl-tests prints the slowest rank's time. A row that was not
-- checked has no `wrong` and becomes a hole, which is an error.
local function raw_rows(text)
  local rows, parsed = {}, parser.parse(text)
  for _, one in ipairs(parsed.runs) do
    for _, row in ipairs(one.rows) do
      local outside, inside = row.out_of_place, row.in_place or {}
      rows[#rows + 1] = {
        cycle = row.cycle, size_bytes = row.size_bytes, source = "nccl-tests", rank = 0,
        time_us = outside.time_us, wrong = outside.wrong,
        inplace_time_us = inside.time_us, inplace_wrong = inside.wrong,
      }
    end
  end
  return rows, parsed.warnings
end

local function run_program(run, name, gpus, program)
  local argv = command(program, gpus, run.opt.cycles)
  run:command(table.concat(argv, " "), run:debug_environment(name))
  local result, message = process.run(argv, {
    env = run:debug_environment(name), stderr = "merge", timeout_s = 600,
  })
  if not result then error(("%s: %s"):format(name, message), 0) end
  run:write("raw/" .. name .. ".stdout", result.stdout)
  if result.ok then return result.stdout, result.wall_us / 1e6 end
  local status = result.exit_code or result.signal
  error(("%s failed (%s)\n%s"):format(name, status, result.stdout:sub(-6000)), 0)
end

---Measures the control in a world of its own, by the program named in the option
---`nccl_tests` if it is there and there are GPUs for it.
---@param run run
---@param name string of the case
---@param requested integer ranks
---@param section section that measures it otherwise
function nccl_tests.control(run, name, requested, section)
  if not run:is_selected(section) then return end
  local program = programs.find(run.opt.nccl_tests)
  if not program or cuda.backend() ~= "cuda" or ranks.launcher() then
    local why = program and "needs GPUs, and no launcher" or "not found"
    run:fact("control", ("nclua's own measurement (%s %s)"):format(run.opt.nccl_tests, why))
    return run:world(name, requested, { section })
  end
  run:fact("control", program)
  local count = worlds.shrink(run, name, requested)
  local text, wall_s = run_program(run, name, count, program)
  local rows, warnings = raw_rows(text)
  if #rows == 0 then error(name .. ": no row that can be read\n" .. text, 0) end
  for _, warning in ipairs(warnings) do
    run:note(("%s: line %d: %s"):format(name, warning.line, warning.why))
  end
  local contracts = {}
  for i, row in ipairs(rows) do
    section:check_row(row)
    row.world_size = count
    contracts[i] = { section = section.name, case = section:case_name(row), rank = 0,
      cycle = row.cycle, world_size = count, check = "no wrong element",
      correct = row.wrong == 0 and row.inplace_wrong == 0 }
  end
  worlds.keep(run, { name = name, requested_world_size = requested, world_size = count,
    wall_s = wall_s }, { [0] = { [section.name] = rows, contracts = contracts } })
end

return nccl_tests
