--- What an operation costs on this processor: measures the CPU backend's algorithms and
--- protocols, and writes the figures that it chooses by (host/cpu/constants.h).
local files = require("nclua.files")
local fit = require("nclua.calibrate.fit")
local measure = require("nclua.calibrate.measure")

local calibrate = {}

---@class nclua.calibrate.cell
---@field algorithm string
---@field protocol string
---@field base_us number of any operation
---@field hop_us number a step, where each rank has a core
---@field bandwidth_gbps number that a channel moves on a core of its own
---@field shared_hop_us number the same where ranks take turns on the cores;
---@field shared_bandwidth_gbps number that of a whole core
---@field error_percent number median distance of the model from the measured times

-- Steps and the share of the message that a rank moves: as host/cpu/model.c counts them.
local function depth(ranks) return math.ceil(math.log(ranks, 2)) end

local STEPS = {
  Ring = function(ranks, cores) return 2 * (ranks - 1) * math.max(1, ranks / cores) end,
  Tree = function(ranks, cores) return 2 * math.max(depth(ranks), (ranks - 1) / cores) end,
  PAT = function(ranks, cores) return depth(ranks) * math.max(1, ranks / cores) end,
}
local MOVED = {
  Ring = function(ranks) return 2 * (ranks - 1) / ranks end,
  Tree = function(ranks) return 2 * (ranks - 1) / ranks end,
  PAT = function(ranks) return (ranks - 1) / ranks end,
}

-- A step cannot cost less than nothing, though noise may say so.
local LEAST_HOP_US = 0.01

local function hop(world, line, base_us, algorithm)
  local steps = STEPS[algorithm](world.ranks, world.cores)
  return math.max(LEAST_HOP_US, (line.latency_us - base_us) / steps)
end

-- What a step costs in a world, what a channel moves there on a whole core.
local function figures(world, algorithm, protocol, base_us)
  local line = fit.line(world.times[algorithm .. "/" .. protocol])
  local share = math.min(1, world.cores / world.ranks)
  return hop(world, line, base_us, algorithm),
    line.bandwidth_gbps * MOVED[algorithm](world.ranks) / share, line.error_percent
end

local function cell_of(worlds, algorithm, protocol, base_us)
  local cell = { algorithm = algorithm, protocol = protocol, base_us = base_us }
  cell.shared_hop_us, cell.shared_bandwidth_gbps, cell.error_percent =
    figures(worlds.shared, algorithm, protocol, base_us)
  cell.hop_us, cell.bandwidth_gbps = cell.shared_hop_us, cell.shared_bandwidth_gbps
  if worlds.own then
    local hop_us, bandwidth, off = figures(worlds.own, algorithm, protocol, base_us)
    cell.hop_us, cell.bandwidth_gbps = hop_us, bandwidth
    cell.error_percent = math.max(cell.error_percent, off)
  end
  return cell
end

--- Measures; takes some seconds. The process must still be able to fork.
---@param options { rounds: integer, on_progress?: fun(text: string) }
---@return nclua.calibrate.cell[]? cells
---@return string? message
---@return string? code
function calibrate.run(options)
  local worlds, message, code = measure.worlds(options)
  if not worlds then return nil, message, code end
  local cells = {}
  for _, cell in ipairs(measure.CELLS) do
    cells[#cells + 1] = cell_of(worlds, cell.algorithm, cell.protocol, worlds.base_us)
  end
  return cells
end

--- The file's text.
---@param cells nclua.calibrate.cell[]
---@param header { date: string, cpu: string, cores: integer }
---@return string
function calibrate.text(cells, header)
  local lines = {
    ("# Made by nclua calibrate on %s: %s, %d cores."):format(header.date, header.cpu,
      header.cores),
    "# algorithm, protocol, base µs; µs a step, GB/s a channel; the same on shared cores",
    "date " .. header.date,
  }
  for _, c in ipairs(cells) do
    lines[#lines + 1] = ("%s %s %.4f %.4f %.4f %.4f %.4f"):format(c.algorithm, c.protocol,
      c.base_us, c.hop_us, c.bandwidth_gbps, c.shared_hop_us, c.shared_bandwidth_gbps)
  end
  return table.concat(lines, "\n") .. "\n"
end

--- Writes it where the backend looks.
---@param path string `nccl.info().calibration_file`
---@param text string
---@return true? ok
---@return string? message
function calibrate.write(path, text)
  local folder = path:match("^(.*)/[^/]*$")
  if folder then
    local ok, message = files.make_folder(folder)
    if not ok then return nil, message end
  end
  return files.write(path, text)
end

return calibrate
