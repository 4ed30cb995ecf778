--- nclua's own table: a line a placement, with what ran, how that is known, and what NCCL
--- expected. "?" is what nobody knows.
local number = require("perf.number")

local layout = {}

local methods = {}
methods.__index = methods

---@param opt table
---@param write fun(text: string)
---@return perf.layout
function layout.new(opt, write)
  return setmetatable({ opt = opt, write = write, is_wide = #opt.types > 1 or #opt.ops > 1
    or #opt.roots > 1 }, methods)
end

-- Heading and width of each column; a text stands to the left.
local COLUMNS = {
  { "bytes", 10 }, { "count", 10 }, { "place", -5 }, { "time_us", 9 }, { "algbw", 7 },
  { "busbw", 7 }, { "wrong", 6 }, { "host_us", 8 }, { "device_us", 9 }, { "95 %", 17 },
  { "p99", 8 }, { "first", 8 }, { "ran", -18 }, { "known from", -11 }, { "model_us", 9 },
  { "off", 6 }, { "slowest", -9 },
}

local function line(cells)
  local words = {}
  for i, column in ipairs(COLUMNS) do
    words[i] = ("%" .. column[2] .. "s"):format(cells[i])
  end
  return (table.concat(words, " "):gsub("%s+$", "")) .. "\n"
end

local function time(us)
  return us and number.time(us) or "-"
end

local function range(low, high)
  return low and ("[%s %s]"):format(number.time(low), number.time(high)) or "-"
end

-- What ran, as NCCL names it, with its number of channels.
local function what_ran(one)
  if not one.algorithm then return "?" end
  local channels = one.channels and ("/%d"):format(one.channels) or "/?"
  return ("%s/%s%s"):format(one.algorithm, one.protocol or "?", channels)
end

local function slowest(one)
  if one.ranks == 1 then return "" end
  return ("r%d +%.0f%%"):format(one.slowest_rank, one.skew_percent)
end

-- What the time column is: a group or a graph divided by its number of operations, or
-- operations back to back, are throughput and never a latency.
local function kind_of_time(opt)
  local kind = "throughput: %d iterations back to back"
  if opt.cudagraph > 0 then
    kind = ("throughput: %d launches of a graph of %%d iterations"):format(opt.cudagraph)
  elseif opt.blocking > 0 then
    local name = opt.agg_iters > 1 and "throughput" or "latency"
    kind = name .. ": each of %d iterations waited for"
  end
  local groups = opt.agg_iters > 1 and (", %d operations a group"):format(opt.agg_iters)
  return kind:format(opt.iters) .. (groups or "")
end

local function how_often(opt)
  if opt.stable > 0 then return ("timed until stable within %g %%"):format(opt.stable) end
  return opt.passes == 1 and "timed once" or ("timed %d times"):format(opt.passes)
end

function methods:begin(collective, devices)
  self.failed = 0
  local opt, device = self.opt, devices[1] or { host = "?", name = "?" }
  self.write(("# %s, %d ranks on %s, %s\n"):format(collective.name, opt.ranks, device.host,
    device.name))
  self.write(("# time_us is %s; %s\n"):format(kind_of_time(opt), how_often(opt)))
  local headings = {}
  for i, column in ipairs(COLUMNS) do headings[i] = column[1] end
  self.write("#" .. line(headings):sub(2))
end

function methods:title(one)
  if not self.is_wide then return end
  local title = ("# %s %s root=%d\n"):format(one.type, one.redop, one.root)
  if title ~= self.last_title then self.write(title) end
  self.last_title = title
end

function methods:row(out, in_place)
  self:title(out)
  for _, one in ipairs({ out, in_place }) do
    self.failed = self.failed + ((one.wrong or 0) > 0 and 1 or 0)
    self.write(line({ one.size_bytes, one.count, one.place, time(one.latency_us
      or one.throughput_us), number.bandwidth(one.algbw_gbps),
      number.bandwidth(one.busbw_gbps), number.wrong(one.wrong), time(one.host_us),
      time(one.device_us), range(one.device_low_us, one.device_high_us),
      time(one.device_p99_us), time(one.device_first_us), what_ran(one),
      one.known_from or "?", one.predicted_us and time(one.predicted_us) or "?",
      one.off_percent and ("%+.0f%%"):format(one.off_percent) or "?", slowest(one) }))
  end
end

function methods:finish()
  self.write(("# rows with wrong data: %d\n"):format(self.failed))
end

return layout
