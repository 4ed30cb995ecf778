--- The table as nccl-tests 2.19.6 prints it, so that other people's parsers can read it.
local inventory = require("nclua.inventory")
local number = require("perf.number")

local layout = {}

---@class perf.layout what either layout is
---@field begin fun(self, collective: perf.collective, devices: table[]) before its rows
---@field row fun(self, out: perf.result, in_place: perf.result?) one size
---@field finish fun(self) after the rows of a collective

local methods = {}
methods.__index = methods

---@param opt table
---@param write fun(text: string)
---@return perf.layout
function layout.new(opt, write)
  return setmetatable({ opt = opt, write = write }, methods)
end

local PREAMBLE, BLOCK = "%12s  %12s  %8s  %6s  %6s", "  %7s  %6s  %6s  %6s"
local PER_ITERATION = "  %7s  %7s  %7s  %7s"
local NOTHING = { "N/A", "N/A", "N/A", "N/A" }

local function configuration(opt)
  local by_factor = opt.stepfactor > 1
  return ("# nThread %d nGpus %d minBytes %d maxBytes %d step: %d(%s) warmup iters: %d "
    .. "iters: %d agg iters: %d validation: %d graph: %d unalign: %d\n"):format(
    opt.threads, opt.ranks // opt.threads, opt.minbytes, opt.maxbytes,
    by_factor and opt.stepfactor or opt.stepbytes, by_factor and "factor" or "bytes",
    opt.warmups, opt.iters, opt.agg_iters, opt.check, opt.cudagraph, opt.unalign)
end

local BLOCKING = {
  "Blocking Enabled: wait for completion and barrier after each collective",
  "Blocking Enabled: wait for completion after each collective",
  "Blocking Enabled: wait and barrier outside of the time after each collective",
}

local function device_line(one)
  local bus_id = one.bus_id:gsub("%.%d$", "")
  return ("#  Rank %2d Group %2d Pid %6d on %10s device %2d [%s] %s\n"):format(one.rank, 0,
    one.pid, one.host, one.device, bus_id, one.name)
end

-- Two blocks of columns. A line's first blank becomes a "#".
local function heading_line(opt, preamble, block, per_iteration)
  local one = BLOCK:format(table.unpack(block))
  if opt.per_iter_timing > 0 then
    one = one .. PER_ITERATION:format(table.unpack(per_iteration))
  end
  return PREAMBLE:format(table.unpack(preamble)):gsub("^ ", "#") .. one .. one .. " \n"
end

local function heading(opt)
  local wide = opt.per_iter_timing > 0 and (" "):rep(36) or ""
  return "#" .. (" "):rep(62) .. "out-of-place" .. wide .. (" "):rep(23) .. "in-place"
    .. (" "):rep(10) .. "\n"
    .. heading_line(opt, { "size", "count", "type", "redop", "root" },
      { opt.report_cputime > 0 and "cputime" or "time", "algbw", "busbw", "#wrong" },
      { "i_min", "i_max", "i_p99", "i_cv%" })
    .. heading_line(opt, { "(B)", "(elements)", "", "", "" },
      { "(us)", "(GB/s)", "(GB/s)", "" }, { "(us)", "(us)", "(us)", "(%)" })
end

function methods:begin(collective, devices)
  self.collective, self.failed, self.sum, self.blocks = collective, 0, 0, 0
  local opt = self.opt
  self.write(("# nclua %s\n"):format(inventory.version()))
  self.write(("# Collective test starting: %s_perf\n"):format(collective.program))
  self.write(configuration(opt))
  if opt.blocking > 0 then self.write(("# %s\n"):format(BLOCKING[opt.blocking])) end
  self.write("#\n# Using devices\n")
  for _, one in ipairs(devices) do self.write(device_line(one)) end
  self.write("#\n" .. heading(opt))
end

local function per_iteration(one)
  local words = NOTHING
  if one and one.device_us then
    words = { number.time(one.device_min_us), number.time(one.device_max_us),
      number.time(one.device_p99_us or one.device_max_us),
      number.time(one.device_cv_percent or 0) }
  end
  return PER_ITERATION:format(table.unpack(words))
end

local function block(opt, one)
  if not one then return BLOCK:format(table.unpack(NOTHING)) end -- NCCL does not allow it
  local us = opt.report_cputime > 0 and one.host_us or one.latency_us or one.throughput_us
  return BLOCK:format(number.time(us), number.bandwidth(one.algbw_gbps),
    number.bandwidth(one.busbw_gbps), number.wrong(one.wrong))
end

function methods:count(one)
  if not one then return end
  self.sum, self.blocks = self.sum + one.busbw_gbps, self.blocks + 1
  self.failed = self.failed + ((one.wrong or 0) > 0 and 1 or 0)
end

function methods:row(out, in_place)
  local redop = out.collective == "hypercube" and "" or out.redop
  local words = { PREAMBLE:format(out.size_bytes, out.count, out.type, redop, out.root) }
  for _, one in ipairs({ out, in_place or false }) do
    self:count(one)
    words[#words + 1] = block(self.opt, one)
    words[#words + 1] = self.opt.per_iter_timing > 0 and per_iteration(one) or nil
  end
  if self.opt.report_timestamps > 0 then
    words[#words + 1] = os.date("  %Y-%m-%d %H:%M:%S")
  end
  self.write(table.concat(words) .. "\n")
end

function methods:finish()
  local verdict = self.failed == 0 and "OK" or "FAILED"
  self.write(("# Out of bounds values : %d %s\n"):format(self.failed, verdict))
  self.write(("# Avg bus bandwidth    : %g \n"):format(self.sum / self.blocks))
  self.write(("#\n# Collective test concluded: %s_perf\n#\n\n"):format(
    self.collective.program))
end

return layout
