--- Why NCCL's model gives a time: every term of the formula with its numbers.
local bandwidth = require("nclua.cost_model.bandwidth")
local cost_model = require("nclua.cost_model")

local explain = {}

local function say_latency(model, collective, algorithm, protocol, cell)
  local s, t = model.system, cell.terms
  if algorithm == "Ring" then
    local steps = bandwidth.steps(s, collective)
    return ("base %.1f + %d steps, %.1f us each inside a node, %.1f us over the network")
      :format(t.base, steps, t.intra, t.inter)
  end
  if algorithm == "Tree" then
    return ("base %.1f + 2 x (%d hops inside, %.1f us each, + log2(%d nodes) hops outside, "
      .. "%.1f us each)"):format(t.base, s.ranks // s.nodes - 1, t.intra, s.nodes, t.inter)
  end
  return ("base %.1f, inside %.1f us, network %.1f us (%s/%s)"):format(t.base, t.intra,
    t.inter, algorithm, protocol)
end

local function say_bandwidth(model, algorithm, cell)
  local g = model.system.graph_of[algorithm]
  return ("%d channels, %.1f GB/s each inside, %.1f outside: %.1f GB/s; after NCCL's "
    .. "factors and ceilings %.1f GB/s of the message"):format(g.channels, g.bw_intra,
    g.bw_inter, cell.total_gbps or 0, cell.bandwidth_gbps)
end

--- The terms of one cell's time, as lines of text.
---@param model nclua.cost_model.model
---@param bytes integer the model's bytes
---@return string[] lines
function explain.cell(model, collective, algorithm, protocol, bytes)
  local cell = model.cells[collective][algorithm][protocol]
  local time, terms = cost_model.time(model, collective, algorithm, protocol, bytes)
  if time < 0 then
    return { ("%s/%s is off: %s"):format(algorithm, protocol, cell.why or "no bandwidth") }
  end
  local lines = {
    ("%s/%s: %.2f us = latency %.2f us + %d bytes / (1000 x %.2f GB/s)"):format(algorithm,
      protocol, time, terms.latency_us, bytes, terms.bandwidth_gbps),
    "  latency: " .. say_latency(model, collective, algorithm, protocol, cell),
    "  bandwidth: " .. say_bandwidth(model, algorithm, cell),
  }
  if terms.correction ~= 1 then
    lines[#lines + 1] = ("  at this size NCCL takes the tree at x%.2f"):format(
      terms.correction)
  end
  if terms.is_plateau then
    lines[#lines + 1] = ("  latency raised from %.2f us: every channel is busy on several "
      .. "nodes"):format(cell.latency_us)
  end
  return lines
end

--- All cells that have a time, fastest first.
---@param model nclua.cost_model.model
---@param costs table<string, table<string, number>>
---@return { algorithm: string, protocol: string, time_us: number }[]
function explain.ranking(model, costs)
  local list = {}
  for order, algorithm in ipairs(model.algorithms) do
    for place, protocol in ipairs(cost_model.names.PROTOCOLS) do
      local time = costs[algorithm][protocol]
      if time >= 0 then
        list[#list + 1] = { algorithm = algorithm, protocol = protocol, time_us = time,
          order = order * 8 + place }
      end
    end
  end
  table.sort(list, function(a, b)
    if a.time_us ~= b.time_us then return a.time_us < b.time_us end
    return a.order < b.order -- a tie goes to the lower enum value
  end)
  return list
end

--- What would make the runner-up win, in words.
---@return string
function explain.flip(first, second)
  if not second then return "nothing: there is no other" end
  local gap = second.time_us - first.time_us
  return ("%s/%s %.2f us (%.1f %%) faster than it is now"):format(second.algorithm,
    second.protocol, gap, 100 * gap / second.time_us)
end

return explain
