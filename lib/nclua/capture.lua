--- What the library chooses, size by size, and what it knew: one call of each size in a
--- world of its own, with a line a choice in NCCL's log and nclua's tuner plugin looking
--- on, which NCCL hands its exact cost table. Reading it back needs the directory alone.
local capture = {}

local cost_model = require("nclua.cost_model")
local csv = require("nclua.csv")
local files = require("nclua.files")
local measure = require("nclua.measure")
local nccl_log = require("nclua.parse.nccl_log")
local payload = require("nclua.payload")
local section = require("nclua.section")
local steering = require("nclua.steering")

local FP32 = 4 -- bytes

local SPEC = {
  title = "What the library chose",
  columns = "size_bytes cycle algorithm protocol channels",
  keys = "size_bytes",
  case = "bytes={size_bytes}",
  metric = "channels",
  summary = "size_bytes algorithm protocol channels correct",
}

local function cases(opt)
  local list = {}
  local sizes = opt.sizes or measure.sizes(opt.smallest, opt.largest, 2)
  for i, bytes in ipairs(sizes) do list[i] = { size_bytes = bytes } end
  return list
end

-- The CPU backend can be asked; NCCL says it in its log alone.
local function last_choice(comm)
  return comm:last_choice() or { algorithm = "?", protocol = "?", channels = 0 }
end

local function measure_case(rank, case)
  local data <close> = payload.all_reduce(rank, "f32", case.size_bytes // FP32)
  for _ = 1, rank.opt.calls or 1 do
    rank.comm:all_reduce(data.send, data.recv, "sum", rank.stream)
  end
  rank:barrier()
  local choice = last_choice(rank.comm)
  rank:emit({ algorithm = choice.algorithm, protocol = choice.protocol,
    channels = choice.channels })
  rank:check("sum of every element", data:is_sum(rank.stream))
end

---@param name string
---@return section
function capture.section(name)
  local one = section.new(name, SPEC)
  one.cases, one.measure = cases, measure_case
  function one.summarise(case)
    return { algorithm = case.algorithm, protocol = case.protocol,
      channels = case.channels }
  end
  return one
end

---Makes the calls: one a size, or as many as the option `calls` says.
---@param run run
---@param part section of `capture.section`
---@param world { name: string, ranks: integer, env: ranks.env, values: table? }
function capture.measure(run, part, world)
  local env = steering.environment()
  for name, value in pairs(world.env) do env[name] = env[name] or value end
  env.NCCL_DEBUG, env.NCCL_DEBUG_SUBSYS = "INFO", "INIT,ENV,GRAPH,TUNING"
  env.NCLUA_TUNER_OBSERVE = run:path(("raw/nccl/%s_%%h_%%p.csv"):format(world.name))
  run:world(world.name, world.ranks, { part }, { env = env, values = world.values })
end

-- The plugin says in a comment how many calls it could not keep.
local function read_observed(text, into)
  local lost = 0
  local table_text = text:gsub("# (%d+) calls lost here\n", function(count)
    lost = lost + math.tointeger(count)
    return ""
  end)
  for _, row in ipairs(assert(csv.decode(table_text))) do
    for name, value in pairs(row) do row[name] = csv.value(value) end
    row.collective = cost_model.names.collective(row.collective)
    row.algorithm = row.algorithm and cost_model.names.algorithm(row.algorithm)
    row.protocol = row.protocol and cost_model.names.protocol(row.protocol)
    into[#into + 1] = row
  end
  return lost
end

---@class capture.result
---@field log nclua.nccl_log.result of all processes together
---@field observed table[] the tuner's call log, all processes
---@field lost integer calls that it could not keep

---Reads what a world's processes have logged.
---@param folder string the run's
---@param name string the world's
---@return capture.result
function capture.read(folder, name)
  local parser = nccl_log.parser()
  local result = { observed = {}, lost = 0 }
  local raw = folder .. "/raw/nccl"
  for _, file in ipairs(files.list(raw)) do
    local is_ours = file:sub(1, #name + 1) == name .. "_"
    local text = is_ours and assert(files.read(raw .. "/" .. file))
    if is_ours and file:find("%.csv$") then
      result.lost = result.lost + read_observed(text, result.observed)
    elseif is_ours then
      parser:feed(text)
    end
  end
  result.log = parser:finish()
  return result
end

---The costs that the library handed to its tuner.
---@param row table of the call log
---@return table<string, table<string, number>> costs [algorithm][protocol], µs, -1: none
function capture.costs(row)
  local costs = {}
  for _, algorithm in ipairs(cost_model.names.ALGORITHMS) do
    for _, protocol in ipairs(cost_model.names.PROTOCOLS) do
      local cost = row[("%s/%s_us"):format(algorithm:lower(), protocol:lower())]
      costs[algorithm] = costs[algorithm] or {}
      costs[algorithm][protocol] = cost or -1
    end
  end
  return costs
end

---@class capture.choice
---@field algorithm string "?" if nothing tells
---@field protocol string
---@field channels integer? that were really used
---@field time_us number? that the library expected, where its log says it
---@field source string "log", "tuner" or "backend"

local function put(choices, bytes, choice)
  local known = choices[bytes]
  if not known then
    choices[bytes] = choice
  elseif known.algorithm ~= choice.algorithm or known.protocol ~= choice.protocol then
    error(("%d bytes: %s/%s (%s) and %s/%s (%s) were chosen: ranks must agree"):format(
      bytes, known.algorithm, known.protocol, known.source, choice.algorithm,
      choice.protocol, choice.source), 0)
  end
end

---What was chosen for each size; every source must say the same.
---@param result capture.result
---@param rows table[] of the section
---@return table<integer, capture.choice> by bytes
function capture.choices(result, rows)
  local choices = {}
  for _, one in ipairs(result.log.selections) do
    if one.collective == "all_reduce" or one.collective == nil then
      put(choices, one.bytes, { algorithm = one.algorithm, protocol = one.protocol,
        channels = one.channels, time_us = one.time_us, source = "log" })
    end
  end
  for _, one in ipairs(rows) do
    if one.algorithm ~= "?" then
      put(choices, one.size_bytes, { algorithm = one.algorithm, protocol = one.protocol,
        channels = one.channels, source = "backend" })
    end
  end
  for _, one in ipairs(result.observed) do
    if one.collective == "all_reduce" and one.algorithm then
      put(choices, one.bytes, { algorithm = one.algorithm, protocol = one.protocol,
        source = "tuner" })
    end
  end
  return choices
end

return capture
