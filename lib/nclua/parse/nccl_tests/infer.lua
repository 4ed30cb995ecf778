--- Which collective a table is of, where no line says it (before 2.16.7): bus bandwidth is
--- algorithm bandwidth times a factor that depends on the collective and the ranks.
local infer = {}

local TOLERANCE = 0.01

-- Of the largest row whose bandwidth has digits enough.
local function ratio_of(run)
  local best, size = nil, -1
  for _, row in ipairs(run.rows) do
    local half = row.out_of_place
    local own, bus = half.algbw_gbps, half.busbw_gbps
    if own and bus and own >= 1 and own < 1e5 and row.size_bytes > size then
      best, size = bus / own, row.size_bytes
    end
  end
  return best
end

local function is_near(a, b) return math.abs(a - b) < TOLERANCE * b end

local function has_label(run, name)
  for _, label in ipairs(run.labels) do
    if label == name or (name == "redop" and label == "op") then return true end
  end
  return false
end

-- Factor 1: from one root, or between pairs. An unrooted test of 2.13 and newer prints -1.
local function with_factor_one(run, row)
  if not has_label(run, "root") or (row.root or -1) < 0 then return "sendrecv" end
  local has_operation = row.redop ~= nil and row.redop ~= "none"
  return has_operation and "reduce" or "broadcast"
end

-- Factor (n - 1) / n. Up to 2.11 a blank under the redop heading is alltoall's; later the
-- rooted ones, and all_gather and alltoall, look alike.
local function with_factor_below_one(run, row)
  if row.redop and row.redop ~= "none" then return "reduce_scatter" end
  if has_label(run, "root") then return nil end
  return has_label(run, "redop") and "alltoall" or "all_gather"
end

--- The collective; nil if several fit.
---@param run nclua.nccl_tests.run
---@return string?
function infer.collective(run)
  local ranks, row, ratio = run.ranks, run.rows[#run.rows], ratio_of(run)
  if not ranks or ranks < 3 or not ratio then return nil end
  if is_near(ratio, 2 * (ranks - 1) / ranks) then return "all_reduce" end
  if is_near(ratio, 1) then return with_factor_one(run, row) end
  if is_near(ratio, (ranks - 1) / ranks) then return with_factor_below_one(run, row) end
  return nil
end

return infer
