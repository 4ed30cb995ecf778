--- How many channels and threads an operation gets. Source: getChannnelThreadInfo
--- (src/enqueue.cc) and scheduleCollTasksToPlan of NCCL 2.22 … 2.30.
local constants = require("nclua.cost_model.constants")

local channels = {}

local max, min = math.max, math.min

--- Threads of a cell's kernel before the size is known.
---@return integer
function channels.max_threads(s, algorithm, protocol)
  local is_basic = algorithm == "Tree" or algorithm == "Ring"
  if s.v < 1400 then is_basic = true end -- CollNet has the same threads there
  if protocol == "LL128" then return is_basic and 640 or 0 end
  if protocol == "LL" then return is_basic and 512 or 0 end
  if algorithm == "Ring" then
    local g = s.graph_of.Ring
    return g.bw_intra * g.channels <= 12 and 256 or 512
  end
  if algorithm == "Tree" then return 512 end
  if algorithm == "PAT" then return 0 end
  return s.v >= constants.OWN_GRAPHS and 640 or 512
end

--- Bytes a thread should have before another channel pays.
---@return integer
function channels.threshold(s, algorithm, protocol)
  if algorithm == "CollNetDirect" or algorithm == "CollNetChain" then
    return protocol == "Simple" and 512 or 8
  end
  if protocol == "Simple" then return 64 end
  return algorithm == "Ring" and protocol == "LL" and 8 * s.ranks or 8
end

--- Communicator channels ("N coll channels" of the log) from the graphs, where the log is
--- not at hand.
---@return integer
function channels.communicator(s)
  local g, most = s.graph_of.Ring, constants.max_channels(s.v)
  local count = min(most, 2 * g.channels)
  local is_wide = s.v >= 2500 and s.cc >= 90 or s.cc == 90
  if s.nodes > 1 and g.bw_intra > 45 and is_wide and count < 16 then count = 2 * count end
  count = min(count, s.max_channels or most)
  count = max(count, s.min_channels or 1)
  if s.v >= 2000 and s.v < 2800 then count = max(count, s.nvls_channels or 0) end
  return count
end

-- CollNetDirect gives up channels in ever smaller steps.
local function collnet_direct(bytes, count, threads, threshold, heads)
  local step, is_short = 16, true
  while step >= 1 and is_short do
    while true do
      is_short = bytes < count * threads * heads * threshold
      if not (is_short and count > step) then break end
      if count == step + step // 2 then threshold = threshold // 2 end
      count = count - 1
    end
    step = step // 2
  end
  return count, threads
end

local function by_size(bytes, count, threads, threshold)
  while bytes < count * threads * threshold and count >= 2 do count = count - 1 end
  while bytes < count * threads * threshold and threads % 128 == 0 do
    threads = threads // 2
  end
  return count, threads
end

-- Threads that only move data, beside those that reduce.
local function extra_threads(s, algorithm, protocol, threads)
  if s.v < constants.OWN_GRAPHS and protocol == "Simple" and s.v >= 1000 then
    threads = threads + 32
    if algorithm ~= "Ring" then threads = threads + 96 end
    return algorithm == "NVLS" and 640 or max(threads, 96)
  end
  if protocol == "Simple" then
    if algorithm == "Ring" then threads = threads + 32 end
    if algorithm == "Tree" then threads = threads + 128 end
  end
  threads = max(threads, 96)
  if algorithm == "Tree" and s.v >= 2200 then threads = 640 end
  return algorithm == "PAT" and 640 or threads
end

--- Most channels and the threads a channel, from the model's bytes.
---@return integer channels
---@return integer threads
function channels.most(s, algorithm, protocol, bytes)
  local count, threads = s.coll_channels, channels.max_threads(s, algorithm, protocol)
  local threshold = channels.threshold(s, algorithm, protocol)
  if algorithm == "CollNetDirect" then
    count, threads = collnet_direct(bytes, count, threads, threshold, s.collnet.heads or 1)
  elseif algorithm:match("^NVLS") then
    local own = s.nvls_channels or 0
    local is_capped = s.v >= 2800 and algorithm == "NVLS" and s.nodes > 1
    count = is_capped and min(own, count) or own
  else
    count, threads = by_size(bytes, count, threads, threshold)
  end
  return count, extra_threads(s, algorithm, protocol, threads)
end

local function ceil_div(a, b) return -(-a // b) end

-- Bytes on the wire for one byte of the user's.
local function traffic_per_byte(s, collective, protocol)
  local factor = 1
  if collective == "all_reduce" then factor = 2 end
  if collective == "all_gather" or collective == "reduce_scatter" then factor = s.ranks end
  return s.v >= 2600 and protocol == "LL" and factor * 4 or factor
end

-- Traffic a channel should carry, and the size of the smallest unit of division.
local function division(s, bytes, per_byte, count)
  local least = constants.min_traffic(s.v)
  local cell = ceil_div(ceil_div(least, per_byte), 16) * 16
  if s.v < 2300 then cell = 16 end
  if s.v >= 2900 then
    local share = ceil_div(max(least, bytes * per_byte), count)
    return ceil_div(share, 16) * 16, cell
  end
  local traffic = s.v < 2300 and bytes * per_byte or max(least, bytes * per_byte)
  return max(least, traffic // count), cell
end

--- Channels that a single operation really uses: Hi + 1 of the selection line.
---@param s table the prepared system
---@param task_bytes integer count × element size: per rank for all_gather, reduce_scatter
---@param most integer from channels.most
---@return integer
function channels.used(s, collective, algorithm, protocol, task_bytes, most)
  local count = min(most, s.coll_channels)
  local is_collnet = algorithm:match("^CollNet") or (algorithm == "NVLS" and s.nodes > 1)
  if is_collnet or s.v < 2200 then return most end -- all of them, before 2.22
  if task_bytes == 0 or count <= 1 then return 1 end
  local per_byte = traffic_per_byte(s, collective, protocol)
  local share, cell = division(s, task_bytes, per_byte, count)
  local cell_traffic, cells = cell * per_byte, ceil_div(task_bytes, cell)
  local per = min(cells, ceil_div(share, cell_traffic))
  local low = per
  if s.v < 2300 then low = min(cells, share // cell_traffic) end
  local middle, high = (cells - low) // per, (cells - low) % per
  local function total() return (low > 0 and 1 or 0) + middle + (high > 0 and 1 or 0) end
  if total() > count then
    middle = count - 2
    local each = (cells - low) // (middle + 1)
    high = each + (cells - low) % (middle + 1)
  end
  return total()
end

return channels
