--- Times of the CPU backend's cells, call by call steered on one communicator, so that what
--- disturbs the machine disturbs them all alike.
local environment = require("nclua.environment")
local plugins = require("nclua.plugins")
local ranks = require("nclua.ranks")
local stats = require("nclua.stats")

local measure = {}

measure.CELLS = {
  { algorithm = "Tree", protocol = "LL" },
  { algorithm = "Tree", protocol = "LL128" },
  { algorithm = "Tree", protocol = "Simple" },
  { algorithm = "Ring", protocol = "LL" },
  { algorithm = "Ring", protocol = "LL128" },
  { algorithm = "Ring", protocol = "Simple" },
  { algorithm = "PAT", protocol = "Simple", collective = "all_gather" },
}
measure.SIZES = { 8, 1 << 10, 8 << 10, 64 << 10, 256 << 10, 1 << 20, 4 << 20 }

-- Calls whose mean is one time: enough for the clock, few enough to be quick.
local function calls_for(bytes) return math.max(2, math.min(50, (256 << 10) // bytes)) end

-- One time of a cell: microseconds a call.
local function time_of(rank, comm, stream, cell, buffers, bytes)
  local calls = calls_for(bytes)
  local x = buffers[bytes]
  local burst <close> = comm:burst(function()
    if cell.collective == "all_gather" then
      comm:all_gather(x.part, x.whole, stream)
    else
      comm:all_reduce(x.whole, x.whole, "max", stream)
    end
  end)
  rank:barrier(stream)
  burst:time(1, stream)
  rank:barrier(stream)
  local _, wall_us = burst:time(calls, stream)
  return wall_us / calls
end

local function make_buffers(cuda, count)
  local buffers = {}
  for _, bytes in ipairs(measure.SIZES) do
    local elements = math.max(1, bytes // 4 // count)
    local whole = assert(cuda.buffer("f32", elements * count)):fill(1)
    local part = assert(cuda.buffer("f32", elements)):fill(1)
    buffers[bytes] = { whole = whole, part = part }
  end
  return buffers
end

local function serve(rank, path, rounds)
  local cuda, tuner = require("nclua.cuda"), require("nclua.tuner")
  local plugin <close> = assert(tuner.open(path))
  local comm <close> = rank:comm({ max_ctas = 1 })
  local stream <close> = assert(cuda.stream())
  local buffers = make_buffers(cuda, rank.count)
  for _ = 1, rounds do
    for i, cell in ipairs(measure.CELLS) do
      plugin:force({ algorithm = cell.algorithm, protocol = cell.protocol })
      for _, bytes in ipairs(measure.SIZES) do
        local us = time_of(rank, comm, stream, cell, buffers, bytes)
        rank:emit("time", { cell = i, bytes = bytes, us = us })
      end
    end
  end
  plugin:release()
end

-- The slowest rank's time in each round; of these the least, since other work only ever
-- adds.
local function reduce_rows(list, count)
  local rounds = {} -- [cell][bytes][rank] = times in order
  for _, row in ipairs(list) do
    local r, by_cell = row.row, rounds
    by_cell[r.cell] = by_cell[r.cell] or {}
    by_cell[r.cell][r.bytes] = by_cell[r.cell][r.bytes] or {}
    local by_rank = by_cell[r.cell][r.bytes]
    by_rank[row.rank] = by_rank[row.rank] or {}
    table.insert(by_rank[row.rank], r.us)
  end
  local times = {}
  for i, cell in ipairs(measure.CELLS) do
    local key = cell.algorithm .. "/" .. cell.protocol
    times[key] = {}
    for bytes, by_rank in pairs(rounds[i]) do
      local slowest = {}
      for round, us in ipairs(by_rank[0]) do
        for rank = 1, count - 1 do us = math.max(us, by_rank[rank][round]) end
        slowest[round] = us
      end
      times[key][bytes] = stats.min(slowest)
    end
  end
  return times
end

local function run_world(count, cpus, path, rounds)
  local affinity = nil
  if cpus then
    affinity = {}
    for i = 1, count do affinity[i] = cpus end
  end
  local report, message, code = ranks.run({
    n = count, affinity = affinity, oversubscribe = true, timeout_s = 120,
    env = {
      NCCL_TUNER_PLUGIN = path, NCCL_ALGO = false, NCCL_PROTO = false, NCCL_DEBUG = false,
      NCLUA_TUNER_FORCE = false, NCLUA_TUNER_RULES = false,
    },
    fn = function(rank) serve(rank, path, rounds) end,
  })
  if not report then return nil, message, code end
  return reduce_rows(report.rows, count)
end

-- What a call costs where there is nobody to talk to.
local function base_time(rounds)
  local report, message, code = ranks.run({ n = 1, timeout_s = 60, fn = function(rank)
    local cuda = require("nclua.cuda")
    local comm <close> = rank:comm()
    local stream <close> = assert(cuda.stream())
    local x <close> = assert(cuda.buffer("f32", 2)):fill(1)
    local burst <close> = comm:burst(function() comm:all_reduce(x, x, "max") end)
    for _ = 1, rounds do
      local _, wall_us = burst:time(50, stream)
      rank:emit("base", { us = wall_us / 50 })
    end
  end })
  if not report then return nil, message, code end
  local times = {}
  for i, row in ipairs(report.rows) do times[i] = row.row.us end
  return stats.min(times)
end

--- Two ranks with a core each (`own`, if there are two), and four that take turns on two
--- cores, or two on one (`shared`).
---@param options { rounds: integer, on_progress?: fun(text: string) }
---@return table? worlds base_us, own?, shared: ranks, cores, times[cell][bytes]
---@return string? message
---@return string? code
function measure.worlds(options)
  local tell = options.on_progress or function() end
  local path, message, code = plugins.file("tuner")
  if not path then return nil, message, code end
  local cpus = environment.cpus()
  local worlds = {}
  tell("one rank")
  worlds.base_us, message, code = base_time(options.rounds)
  if not worlds.base_us then return nil, message, code end
  if #cpus >= 2 then
    tell("two ranks with a core each")
    local own, why, symbol = run_world(2, nil, path, options.rounds)
    if not own then return nil, why, symbol end
    worlds.own = { ranks = 2, cores = 2, times = own }
  end
  local cores = math.min(2, #cpus)
  tell(("%d ranks on %d cores"):format(2 * cores, cores))
  local shared, why, symbol = run_world(2 * cores, table.move(cpus, 1, cores, 1, {}), path,
    options.rounds)
  if not shared then return nil, why, symbol end
  worlds.shared = { ranks = 2 * cores, cores = cores, times = shared }
  return worlds
end

return measure
