--- How far a run is: one line that renews itself on a terminal, plain lines elsewhere.
--- Writes to standard error: standard output is the report's.
local progress = {}

local cuda = require("nclua.cuda")
local terminal = require("nclua.terminal")

local RENEW_NS = 100 * 1000 * 1000

---@class progress.bar
---@field out file*
---@field total integer steps of the whole run
local bar = {}
bar.__index = bar

---@class progress.options
---@field total integer steps of the whole run
---@field quiet? boolean shows nothing
---@field out? file* default: standard error; the others are for tests
---@field terminal? boolean
---@field columns? integer
---@field now_ns? fun(): integer

---@param opts progress.options
---@return progress.bar
function progress.start(opts)
  local is_terminal, out = opts.terminal, opts.out or io.stderr
  if opts.quiet then is_terminal, out = false, nil end
  if is_terminal == nil then is_terminal = terminal.is_terminal("stderr") end
  local now_ns = opts.now_ns or cuda.now_ns
  return setmetatable({
    out = out,
    total = opts.total,
    is_terminal = is_terminal,
    columns = opts.columns or terminal.columns("stderr") or 80,
    now_ns = now_ns,
    began_ns = now_ns(),
    shown_ns = -RENEW_NS,
    done = 0,
    label = "",
  }, bar)
end

---A rate and the time left, from what is done so far.
---@return string
function bar:estimate()
  local elapsed_s = (self.now_ns() - self.began_ns) / 1e9
  if self.done == 0 or elapsed_s <= 0 then return "" end
  local rate = self.done / elapsed_s
  local left_s = math.max(0, self.total - self.done) / rate
  return ("%.1f cycles/s, about %.0f s left"):format(rate, left_s)
end

local function show(self)
  local percent = 100 * self.done // self.total
  local text = ("[%3d%%] %s  %s"):format(percent, self.label, self:estimate())
  self.out:write("\r\27[K", text:sub(1, self.columns - 1))
  self.out:flush()
  self.shown_ns = self.now_ns()
end

---What is being done from now on. A plain line if nobody watches.
---@param label string
function bar:enter(label)
  if label == self.label then return end
  self.label = label
  if not self.out then return end
  if self.is_terminal then return show(self) end
  self.out:write(("[%3d%%] %s\n"):format(100 * self.done // self.total, label))
  self.out:flush()
end

---@param steps? integer default 1
function bar:step(steps)
  self.done = math.min(self.total, self.done + (steps or 1))
  if self.is_terminal and self.now_ns() - self.shown_ns >= RENEW_NS then show(self) end
end

---Leaves the terminal's line empty.
function bar:finish()
  if self.is_terminal then
    self.out:write("\r\27[K")
    self.out:flush()
  end
end

return progress
