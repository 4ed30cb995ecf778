--- The library's model against what it says and does: its printed table, the costs that
--- it hands a tuner, and its selections are three accounts of one thing. Every size is
--- computed again from the table, and on NCCL from the graph lines too; what disagrees is
--- an error that shows both sides.
local capture = require("nclua.capture")
local cost_model = require("nclua.cost_model")
local from_log = require("nclua.cost_model.from_log")

local model = {}

local COLLECTIVE = "all_reduce"
local LEAST_US, SHARE = 0.15, 0.005 -- what a printed time may be off
local HALF_DIGIT = 0.05 -- the table is printed with one decimal
local EXACT = 1e-5 -- relative: both sides are single precision

local names = cost_model.names

model.TABLE_COLUMNS = { "algorithm", "algorithm_id", "protocol", "protocol_id",
  "base_latency_us", "algorithm_bandwidth_GBs", "available" }

model.CANDIDATE_COLUMNS = { "size_bytes", "algorithm", "algorithm_id", "protocol",
  "protocol_id", "base_latency_us", "base_bandwidth_GBs", "tree_log_size",
  "tree_correction", "effective_bandwidth_GBs", "predicted_time_us", "rounding_us",
  "logged_selected", "logged_selected_time_us", "exact_cost_us", "graph_cost_us" }

local function printed_table(result)
  for _, one in ipairs(result.log.communicators) do
    local tuning = one.tuning and one.tuning[COLLECTIVE]
    if tuning then return tuning end
  end
end

---The table as NCCL printed it, one row a cell.
---@param result capture.result
---@return table[]? rows
---@return string? message
function model.table(result)
  local tuning = printed_table(result)
  if not tuning then return nil, "the log has no model table" end
  local rows = {}
  for a, algorithm in ipairs(names.ALGORITHMS) do
    for p, protocol in ipairs(names.PROTOCOLS) do
      local cell = tuning[algorithm] and tuning[algorithm][protocol]
      if cell then
        rows[#rows + 1] = { algorithm = algorithm, algorithm_id = a - 1,
          protocol = protocol, protocol_id = p - 1, base_latency_us = cell.latency_us,
          algorithm_bandwidth_GBs = cell.bandwidth_gbps,
          available = cell.bandwidth_gbps > 0 and 1 or 0 }
      end
    end
  end
  return rows
end

-- The model that the graph lines of NCCL's log give; the CPU backend's table is its own.
local function model_of_graphs(result, facts)
  if facts.backend == "cpu" then return nil end
  local system, message = from_log.system(result.log, { cc = facts.capability,
    device = facts.device, ranks = facts.ranks, nodes = facts.nodes })
  local of_graphs = system
  if system then of_graphs, message = cost_model.model(system) end
  if of_graphs then return of_graphs end
  error("not computed from the graph lines of the log: " .. message, 0)
end

-- What a version of NCCL multiplies latency and bandwidth by at this size.
local function corrections(of_graphs, row, bytes)
  if not of_graphs then return 1, 1 end
  local _, terms = cost_model.time(of_graphs, COLLECTIVE, row.algorithm, row.protocol,
    bytes)
  if not terms then return 1, 1 end
  local cell = of_graphs.cells[COLLECTIVE][row.algorithm][row.protocol]
  return terms.latency_us / cell.latency_us, terms.correction
end

local function log2(n)
  local log = -1
  while n > 0 do
    log, n = log + 1, n >> 1
  end
  return log
end

local function candidate(row, bytes, of_graphs)
  local latency_factor, factor = corrections(of_graphs, row, bytes)
  local latency, bandwidth = row.base_latency_us, row.algorithm_bandwidth_GBs
  local effective = bandwidth * factor
  local predicted = latency_factor * latency + bytes / (1000 * effective)
  local most = latency_factor * (latency + HALF_DIGIT)
    + bytes / (1000 * math.max(1e-9, bandwidth - HALF_DIGIT) * factor)
  local is_tree = row.algorithm == "Tree"
  return {
    size_bytes = bytes, algorithm = row.algorithm, algorithm_id = row.algorithm_id,
    protocol = row.protocol, protocol_id = row.protocol_id, base_latency_us = latency,
    base_bandwidth_GBs = bandwidth, tree_log_size = is_tree and log2(bytes >> 6) or nil,
    tree_correction = factor, effective_bandwidth_GBs = effective,
    predicted_time_us = predicted, rounding_us = most - predicted,
  }
end

local function name(row)
  return ("%s/%s"):format(row.algorithm, row.protocol)
end

-- The table is rounded: two cells nearer to each other than that are a tie.
local function check_winner(candidates, choice, bytes)
  local best, selected
  for _, row in ipairs(candidates) do
    if not best or row.predicted_time_us < best.predicted_time_us then best = row end
    if row.logged_selected == 1 then selected = row end
  end
  if best == selected then return selected, true end
  local text = "%d bytes: the printed table gives %s (%.2f us), the library chose %s "
    .. "(%s us)"
  local is_tie = selected and selected.predicted_time_us - best.predicted_time_us
    <= selected.rounding_us + best.rounding_us
  if is_tie then return selected, false end
  error(text:format(bytes, name(best), best.predicted_time_us, name(choice),
    selected and ("%.2f"):format(selected.predicted_time_us) or "?"), 0)
end

local function check_time(row, wanted, source)
  local allowed = math.max(LEAST_US, SHARE * wanted, row.rounding_us)
  if math.abs(row.predicted_time_us - wanted) <= allowed then return end
  error(("%d bytes, %s: %.3f us from the printed table, %.3f us %s"):format(row.size_bytes,
    name(row), row.predicted_time_us, wanted, source), 0)
end

-- Costs of one size as NCCL handed them to the tuner, and as the graph lines give them.
local function check_exact(costs, of_graphs, bytes)
  local own = cost_model.costs(of_graphs, COLLECTIVE, bytes)
  for _, algorithm in ipairs(names.ALGORITHMS) do
    for _, protocol in ipairs(names.PROTOCOLS) do
      local wanted = costs[algorithm][protocol]
      local got = own[algorithm] and own[algorithm][protocol] or -1
      local is_off = (wanted < 0) ~= (got < 0)
      if is_off or math.abs(got - wanted) > EXACT * math.abs(wanted) then
        error(("%d bytes, %s/%s: %.9g us from the graph lines, NCCL's own cost is %.9g us")
          :format(bytes, algorithm, protocol, got, wanted), 0)
      end
    end
  end
  return own
end

local function check_choice(costs, choice, bytes)
  local algorithm, protocol = cost_model.choose(costs)
  if algorithm == choice.algorithm and protocol == choice.protocol then return end
  error(("%d bytes: the cheapest of the exact costs is %s/%s, the library chose %s"):format(
    bytes, algorithm or "none", protocol or "none", name(choice)), 0)
end

local function observed_costs(result)
  local by_bytes = {}
  for _, row in ipairs(result.observed) do
    if row.collective == COLLECTIVE and not by_bytes[row.bytes] then
      by_bytes[row.bytes] = capture.costs(row)
    end
  end
  return by_bytes
end

---@class tuning.model.facts what the log may not say
---@field backend string
---@field ranks integer
---@field nodes integer
---@field capability integer? compute capability x 10
---@field device string?

---@class tuning.model.checked what was found to agree
---@field sizes integer
---@field exact integer sizes whose costs were compared with the tuner's
---@field graph integer sizes whose costs were computed from the graph lines
---@field ties integer sizes at which the rounded table cannot tell the winner
---@field notes string[]

-- One size: every cell, checked against all that is known of it.
local function compute(state, bytes, choice)
  local costs, of_graphs = state.costs[bytes], state.of_graphs
  local own = costs and of_graphs and check_exact(costs, of_graphs, bytes)
  local candidates = {}
  for _, row in ipairs(state.table) do
    if row.available == 1 then
      local one = candidate(row, bytes, of_graphs)
      local is_selected = row.algorithm == choice.algorithm
        and row.protocol == choice.protocol
      one.logged_selected = is_selected and 1 or 0
      one.logged_selected_time_us = is_selected and choice.time_us or nil
      one.exact_cost_us = costs and costs[row.algorithm][row.protocol]
      one.graph_cost_us = own and own[row.algorithm][row.protocol]
      candidates[#candidates + 1] = one
    end
  end
  local selected, is_clear = check_winner(candidates, choice, bytes)
  if choice.time_us then check_time(selected, choice.time_us, "in the log") end
  if costs then
    check_choice(costs, choice, bytes)
    for _, row in ipairs(candidates) do
      if row.exact_cost_us >= 0 then check_time(row, row.exact_cost_us, "exactly") end
    end
  end
  return candidates, { exact = costs and 1 or 0, graph = own and 1 or 0,
    ties = is_clear and 0 or 1 }
end

---Computes every size again and compares; raises where accounts disagree.
---@param result capture.result
---@param choices table<integer, capture.choice>
---@param sizes integer[]
---@param facts tuning.model.facts
---@return table[] candidates rows of model_candidates.csv
---@return tuning.model.checked checked
function model.recompute(result, choices, sizes, facts)
  local of_graphs = model_of_graphs(result, facts)
  local state = { table = assert(model.table(result)), costs = observed_costs(result),
    of_graphs = of_graphs }
  local rows, checked = {}, { sizes = #sizes, exact = 0, graph = 0, ties = 0, notes = {} }
  checked.notes[1] = of_graphs and of_graphs.note or nil
  for _, bytes in ipairs(sizes) do
    local choice = choices[bytes]
    if not choice then
      error(("nothing says what was chosen for %d bytes"):format(bytes), 0)
    end
    local candidates, counts = compute(state, bytes, choice)
    table.move(candidates, 1, #candidates, #rows + 1, rows)
    for key, count in pairs(counts) do checked[key] = checked[key] + count end
  end
  return rows, checked
end

return model
