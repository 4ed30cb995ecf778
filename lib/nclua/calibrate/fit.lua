--- The line that times by size are nearest to, in proportion: latency + bytes / bandwidth.
local stats = require("nclua.stats")

local fit = {}

-- Weighted by 1/t²: a time of 1 µs that is off by 10 % counts as much as one of 1 ms.
local function least_squares(times)
  local w, wx, wy, wxx, wxy = 0, 0, 0, 0, 0
  for bytes, us in pairs(times) do
    local weight = 1 / (us * us)
    w, wx, wy = w + weight, wx + weight * bytes, wy + weight * us
    wxx, wxy = wxx + weight * bytes * bytes, wxy + weight * bytes * us
  end
  local determinant = w * wxx - wx * wx
  local slope = (w * wxy - wx * wy) / determinant
  return (wy - slope * wx) / w, slope
end

-- Noise may tilt the line below zero; then the outermost times are what is left to go by.
local function repair(times, latency, slope)
  local smallest, largest
  for bytes in pairs(times) do
    smallest = math.min(smallest or bytes, bytes)
    largest = math.max(largest or bytes, bytes)
  end
  if latency <= 0 then latency = times[smallest] end
  if slope <= 0 then slope = times[largest] / largest end
  return latency, slope
end

---@param times table<integer, number> microseconds by bytes; at least two sizes
---@return { latency_us: number, bandwidth_gbps: number, error_percent: number }
function fit.line(times)
  local latency, slope = repair(times, least_squares(times))
  local errors = {}
  for bytes, us in pairs(times) do
    errors[#errors + 1] = 100 * math.abs(latency + slope * bytes - us) / us
  end
  return {
    latency_us = latency, bandwidth_gbps = 1 / (slope * 1000),
    error_percent = stats.median(errors),
  }
end

return fit
