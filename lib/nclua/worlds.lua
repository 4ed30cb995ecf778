--- A case of a chapter: a world of ranks that measures some sections. Its rows become raw
--- files when it has ended; nothing is written in between, so nothing is torn.
local worlds = {}

local cuda = require("nclua.cuda")
local environment = require("nclua.environment")
local files = require("nclua.files")
local progress = require("nclua.progress")
local ranks = require("nclua.ranks")
local section_module = require("nclua.section")

---@class worlds.done
---@field name string
---@field requested_world_size integer
---@field world_size integer
---@field wall_s number

-- Rows by rank and by section.
local function new_rows(count)
  local rows = {}
  for rank = 0, count - 1 do rows[rank] = {} end
  return rows
end

local function add(rows, rank, section, row)
  local of_rank = rows[rank]
  of_rank[section] = of_rank[section] or {}
  table.insert(of_rank[section], row)
end

local function columns_of(run, name)
  if name == "contracts" then return section_module.contract_columns end
  return run.chapter:section(name).columns
end

local function write_rows(run, folder, rows)
  for rank = 0, #rows do
    for name, some in pairs(rows[rank]) do
      local path = ("raw/results/%s/rank%d_%s.csv"):format(folder, rank, name)
      assert(files.make_folder(files.folder(run:path(path))))
      run:write_table(path, columns_of(run, name), some)
    end
  end
end

-- What every row says of its world.
local function mark(run, rows, requested, times_valid)
  for rank = 0, #rows do
    for _, some in pairs(rows[rank]) do
      for _, row in ipairs(some) do
        row.requested_world_size, row.backend = requested, run.backend
        row.times_valid = times_valid
      end
    end
  end
end

---How many ranks there can be: as many as a launcher made; else no more than devices,
---unless they are to share them.
---@param run run
---@param name string of the case
---@param requested integer
---@return integer
function worlds.shrink(run, name, requested)
  local launcher = ranks.launcher()
  if launcher then return launcher.count end
  local devices = cuda.device_count()
  if devices == 0 then
    error(("%s: the %s backend has no device"):format(name, cuda.backend()), 0)
  end
  if requested <= devices then return requested end
  local text = "%s: %d ranks were asked for, there are %d devices: %s"
  if run.opt.oversubscribe then
    run:note(text:format(name, requested, devices,
      "ranks share devices, ALL TIMES ARE INVALID"))
    return requested
  end
  run:note(text:format(name, requested, devices, ("measured with %d"):format(devices)))
  return devices
end

---Records a world that was measured: its raw rows, and that it took place.
---@param run run
---@param done worlds.done
---@param rows table<integer, table<string, table[]>> by rank from 0 and section
function worlds.keep(run, done, rows)
  mark(run, rows, done.requested_world_size, done.world_size <= cuda.device_count())
  write_rows(run, done.name, rows)
  run.worlds[#run.worlds + 1] = done
end

-- Runs in the rank.
local function measure(rank, sections, opt)
  if rank.index == 0 then
    for _, fact in ipairs(environment.devices()) do rank:emit("facts", fact) end
  end
  local comm <close> = rank:comm()
  for _, section in ipairs(sections) do
    print(("rank %d of %d: %s"):format(rank.index, rank.count, section.name))
    local stream <close> = assert(cuda.stream())
    section:run(rank, { comm = comm, stream = stream, opt = opt })
  end
end

local function count_steps(sections, opt, count)
  local steps = 0
  for _, section in ipairs(sections) do
    steps = steps + #section.cases(opt, count) * (1 + opt.warmups + opt.cycles)
  end
  return steps
end

-- Sorts what comes from the ranks: rows to keep, facts, and how far they are.
local function new_receiver(run, world, bar)
  return function(rank, name, row)
    if name == "progress" then
      bar:enter(("%s: %s %s"):format(world.name, row.section, row.case))
      bar:step()
    elseif name == "facts" then
      run:fact(row[1], row[2])
    else
      add(world.rows, rank, name, row)
    end
  end
end

local function affinity(opt, count)
  if opt.cpu_affinity == "auto" then return nil end
  local given = #opt.cpu_affinity
  if given < count then
    error(("--cpu-affinity: %d CPUs for %d ranks"):format(given, count), 0)
  end
  return table.move(opt.cpu_affinity, 1, count, 1, {})
end

local function fork(run, world, sections, bar)
  return ranks.run({
    n = world.count, env = world.env, timeout_s = run.opt.timeout,
    affinity = affinity(run.opt, world.count), oversubscribe = run.opt.oversubscribe,
    on_row = new_receiver(run, world, bar),
    on_line = function(rank, line, stream)
      local prefix = stream == "stderr" and "rank %d stderr: %s" or "rank %d: %s"
      table.insert(world.output, prefix:format(rank, line))
    end,
    fn = function(rank) measure(rank, sections, world.opt) end,
  })
end

-- The rows that came are evidence, too, but nobody must take them for a whole case.
local function fail(run, world, message)
  mark(run, world.rows, world.requested, false)
  write_rows(run, world.name .. ".incomplete", world.rows)
  run:write("raw/" .. world.name .. ".failure", message .. "\n")
  local first = math.max(1, #world.output - 20)
  local tail = table.concat(world.output, "\n", first)
  local headline, rest = message:match("^([^\n]*)\n?(.*)$")
  error(("%s failed: %s\n%s\n%s"):format(world.name, headline, rest, tail), 0)
end

local function text_of(output)
  return #output > 0 and table.concat(output, "\n") .. "\n" or ""
end

local function merged(base, more)
  local all = {}
  for key, value in pairs(base) do all[key] = value end
  for key, value in pairs(more or {}) do all[key] = value end
  return all
end

local function selected_of(run, sections)
  local selected = {}
  for _, section in ipairs(sections) do
    if run:is_selected(section) then selected[#selected + 1] = section end
  end
  return selected
end

---@class worlds.options
---@field env? ranks.env over those of `run:debug_environment`; false unsets
---@field values? table<string, any> over the chapter's options, for the ranks of this world

---Measures sections in a world, unless none of them was selected.
---@param run run
---@param name string of the case
---@param requested integer ranks
---@param sections section[]
---@param options? worlds.options
function worlds.measure(run, name, requested, sections, options)
  local selected = selected_of(run, sections)
  if #selected == 0 then return end
  local count = worlds.shrink(run, name, requested)
  local world = { name = name, requested = requested, count = count, output = {},
    rows = new_rows(count), opt = merged(run.opt, options and options.values),
    env = merged(run:debug_environment(name), options and options.env) }
  run:command(("%d forked ranks of: %s"):format(count, run.command_line), world.env)
  local bar = progress.start({
    total = count_steps(selected, world.opt, count), quiet = not run.is_leader,
  })
  local report, message = fork(run, world, selected, bar)
  bar:finish()
  run:write("raw/" .. name .. ".stdout", text_of(world.output))
  if not report then fail(run, world, message) end
  if not run.is_leader then return end
  worlds.keep(run, { name = name, requested_world_size = requested, world_size = count,
    wall_s = report.wall_us / 1e6 }, world.rows)
end


return worlds
