--- From a sweep's winners to rules for the tuner plugin: only where the gain is more than
--- chance and worth it. A rule holds from the size at which it was measured half-way to the
--- next measured one (in doublings), for the measured number of ranks and nodes. Pure.
local rules = {}

local contest = require("nclua.contest")
local csv = require("nclua.csv")

---@class tune.rule
---@field min_bytes integer
---@field max_bytes integer
---@field algorithm string
---@field protocol string
---@field channels integer 0: as many as the library takes
---@field sizes integer[] at which it was measured
---@field gain_percent number the least over these sizes, of the time

---@class tune.options
---@field threshold_percent number less time than this is not worth a rule
---@field confidence number
---@field is_paired boolean

rules.COLUMNS = { "colltype", "minbytes", "maxbytes", "algorithm", "protocol", "channels",
  "nNodes", "nRanks", "numPipeOps", "regBuff" }

-- Is this way really faster than the library's, and by how much of the time?
local function gain_of(entry, auto, options)
  local result = contest.compare(auto.times, entry.times, options)
  local percent = (1 - 1 / result.ratio) * 100
  return result.verdict == "faster" and percent > options.threshold_percent and percent
    or nil
end

-- A way that is as fast as the fastest and already in force is not changed for nothing.
local function candidates(ranking, tied, last)
  local list = {}
  for _, entry in ipairs(tied) do
    if last and entry.name == last.name then list[1] = entry end
  end
  list[#list + 1] = ranking[1]
  return list
end

local function choose(winners, bytes, last, options)
  local ranking, auto = winners.rankings[bytes], winners.autos[bytes]
  if not ranking or #ranking == 0 or not auto then return nil end
  for _, entry in ipairs(candidates(ranking, winners.tied[bytes], last)) do
    local gain = gain_of(entry, auto, options)
    if gain then return entry, gain end
  end
end

local function half_way(a, b)
  return math.floor(math.sqrt(a) * math.sqrt(b))
end

local function new_rule(entry, sizes, i)
  local one = entry.case
  return {
    name = entry.name, algorithm = one.algorithm, protocol = one.protocol,
    channels = one.channels, sizes = {}, gain_percent = math.huge,
    min_bytes = i > 1 and half_way(sizes[i - 1], sizes[i]) + 1 or sizes[i],
  }
end

---@param winners winners.result
---@param options tune.options
---@return tune.rule[]
function rules.of(winners, options)
  local list, last, sizes = {}, nil, {}
  for i, row in ipairs(winners.rows) do sizes[i] = row.size_bytes end
  for i, bytes in ipairs(sizes) do
    local entry, gain = choose(winners, bytes, last, options)
    if not entry then
      last = nil
    elseif not last or last.name ~= entry.name then
      last = new_rule(entry, sizes, i)
      list[#list + 1] = last
    end
    if last then
      last.sizes[#last.sizes + 1] = bytes
      last.max_bytes = sizes[i + 1] and half_way(bytes, sizes[i + 1]) or bytes
      last.gain_percent = math.min(last.gain_percent, gain)
    end
  end
  return list
end

---@param list tune.rule[]
---@param bytes integer
---@return tune.rule? rule that the plugin will apply: the first that matches
function rules.at(list, bytes)
  for _, rule in ipairs(list) do
    if bytes >= rule.min_bytes and bytes <= rule.max_bytes then return rule end
  end
end

---The plugin's file. Comments say where it came from.
---@param list tune.rule[]
---@param world { ranks: integer, nodes: integer }
---@param comments string[]
---@return string text
function rules.encode(list, world, comments)
  local rows, lines = {}, {}
  for i, comment in ipairs(comments) do
    lines[i] = ("# %s\n"):format((comment:gsub("\n", " ")))
  end
  for i, rule in ipairs(list) do
    rows[i] = {
      colltype = "allreduce", minbytes = rule.min_bytes, maxbytes = rule.max_bytes,
      algorithm = rule.algorithm:lower(), protocol = rule.protocol:lower(),
      channels = rule.channels > 0 and rule.channels or -1, nNodes = world.nodes,
      nRanks = world.ranks, numPipeOps = -1, regBuff = -1,
    }
  end
  return table.concat(lines) .. csv.encode(rules.COLUMNS, rows)
end

return rules
