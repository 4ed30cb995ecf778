--- The lines around the rows: versions, parameters, devices, labels, closing lines.
local infer = require("nclua.parse.nccl_tests.infer")
local rows = require("nclua.parse.nccl_tests.rows")

local header = {}

local function take_labels(self, body)
  local is_labels = body:match("^size%s+count%s+type") or body:match("^bytes%s+N%s+type")
  if not is_labels then return end
  local run = self:fresh_run(function(r) return #r.labels > 0 end)
  run.labels = rows.split(body)
  self.layout = rows.layout(run.labels)
  return true
end

local function take_version(self, body)
  local version, rest = body:match("^nccl%-tests version (%S+)(.*)")
  if not version then return end
  local run = self:fresh_run(function(r) return r.version or #r.labels > 0 end)
  run.version = version
  run.headers = math.tointeger(rest:match("nccl%-headers=(%d+)"))
  run.library = math.tointeger(rest:match("nccl%-library=(%d+)"))
  return true
end

local function take_start(self, body)
  local program = body:match("^Collective test starting: (%S+)")
  if not program then return end
  self:fresh_run(function(r) return r.program or #r.labels > 0 end).program = program
  return true
end

local CONFIG = {
  nThread = "threads", nGpus = "gpus", minBytes = "min_bytes", maxBytes = "max_bytes",
}

local NUMBERS = {
  warmup_iters = "warmup iters: (%d+)", iters = "%d iters: (%d+)",
  agg_iters = "agg iters: (%d+)", validation = "validation: (%d+)", graph = "graph: (%d+)",
  unalign = "unalign: (%d+)",
}

local function take_config(self, body)
  if not body:match("^nThreads? ?:?%s*%d+ nGpus") then return end
  local run = self:fresh_run(function(r) return next(r.config) or #r.labels > 0 end)
  for name, number in body:gmatch("(%a+)s?:? (%d+)") do
    if CONFIG[name] then run.config[CONFIG[name]] = math.tointeger(number) end
  end
  local step, kind = body:match("step: (%d+)%((%a+)%)")
  if step then run.config["step_" .. kind] = math.tointeger(step) end
  for name, pattern in pairs(NUMBERS) do
    run.config[name] = math.tointeger(body:match(pattern))
  end
  return true
end

local function take_device(self, body)
  local rank, rest = body:match("^Rank%s+(%d+)%s+(.*)")
  if not rank then return end
  local host, device, bus_id, name =
    rest:match("on%s+(%S+)%s+device%s+(%d+)%s+%[(%S-)%]%s*(.*)")
  local number = math.tointeger(rank)
  if not host or not number or not math.tointeger(device) then return end
  self:fresh_run(function(r) return #r.rows > 0 or r.average_busbw_gbps end)
  if rank == "0" and #self.run.devices > 0 and #self.run.rows == 0 then
    self:warn("rank 0 twice: a binary built without MPI under mpirun?", body)
  end
  table.insert(self.run.devices, {
    rank = number, group = math.tointeger(rest:match("Group%s+(%d+)")),
    pid = math.tointeger(rest:match("Pid%s+(%d+)")), host = host,
    device = math.tointeger(device), bus_id = bus_id, name = name,
  })
  return true
end

local function take_footer(self, body)
  local count, status = body:match("^Out of bounds values%s*:%s*(%d+)%s*(%a*)")
  local average = body:match("^Avg bus bandwidth%s*:%s*(%S+)")
  local concluded = body:match("^Collective test concluded:")
  if not (count or average or concluded) then return end
  self:finish_row()
  if count then
    self.run.out_of_bounds = math.tointeger(count)
    self.run.status = status ~= "" and status or nil
  end
  if average then
    self.run.average_busbw_gbps = rows.value(average)
    self.run.complete = #self.run.rows > 0
  end
  return true
end

local function take_note(self, body)
  local env = body:match("^#%s*env:%s*(.-)%s*$") or body:match("^env:%s*(.-)%s*$")
  if env then
    local run = self:fresh_run(function(r) return #r.labels > 0 or r.env end)
    run.env = env:find("=", 1, true) and env or ""
    return true
  end
  local title = body:match("^#%s+(.+)")
  if title then
    self:fresh_run(function(r) return #r.labels > 0 or r.title end).title = title
    return true
  end
  local bytes = body:match("^Reducing maxBytes to (%d+)")
  if bytes then
    self.run.config.clamped_max_bytes = math.tointeger(bytes)
    return true
  end
  local nccl = body:match("^NCCL version (%d+%.%d+%.?%d*)")
  if nccl then
    self.run.nccl = self.run.nccl or nccl
    return true
  end
  local path = body:match("^Writing JSON output to (%S+)")
  if path then
    self.run.json_path = path
    return true
  end
end

local TAKERS = {
  take_version, take_start, take_config, take_device, take_labels, take_footer, take_note,
}

local FAILURES = {
  "Test %u+ failure", "Test Cuda failure", "Cuda failure", "NCCL failure",
  "Test failure", "Test timeout", "Invalid number of GPUs", "^invalid type",
  "^invalid op", "^invalid option", "is not a power of 2, skipping",
}

--- Is this a line by which a test says what went wrong?
---@param body string
---@return boolean
function header.is_failure(body)
  for _, pattern in ipairs(FAILURES) do
    if body:match(pattern) then return true end
  end
  return false
end

-- What may follow a "#" and says nothing that a record holds.
local DECORATION = {
  "^$", "^Using devices", "^nclua[ :]", "^%(B%)", "^out%-of%-place", "^Blocking Enabled",
  "^Per%-Iteration Report", "^Parallel Init Enabled", "^GPU memory usage",
  "^skipping json output", "^error:", "^NCCL Tests compiled with", "^NCCL_TESTS_",
  "^rank=", "^```", "^{}$",
}

---@param body string
---@return boolean
function header.is_decoration(body)
  for _, pattern in ipairs(DECORATION) do
    if body:match(pattern) then return true end
  end
  return false
end

--- Takes a line if it is one of these.
---@param parser table
---@param body string without "#"
---@return boolean
function header.take(parser, body)
  for _, take in ipairs(TAKERS) do
    if take(parser, body) then return true end
  end
  return false
end

-- A host whose devices are all listed tells how many a node has, if not all are listed.
local function infer_nodes(run)
  local hosts, host_count, most = {}, 0, 0
  for _, device in ipairs(run.devices) do
    if not hosts[device.host] then host_count = host_count + 1 end
    hosts[device.host] = true
    most = math.max(most, device.device + 1)
  end
  if host_count == 0 then return end
  run.nodes = host_count
  if #run.devices >= run.ranks then return end
  local is_told = most > 1 and run.ranks % most == 0
  run.nodes, run.is_nodes_inferred = is_told and run.ranks // most or nil, true
end

--- What follows from all lines together.
---@param run nclua.nccl_tests.run
---@return nclua.nccl_tests.run
function header.complete(run)
  if run.program then run.collective = run.program:gsub("_perf.*", "") end
  for _, device in ipairs(run.devices) do
    run.ranks = math.max(run.ranks or 0, device.rank + 1)
  end
  if run.ranks then infer_nodes(run) end
  if not run.collective then
    run.collective = infer.collective(run)
    run.is_collective_inferred = run.collective ~= nil or nil
  end
  return run
end

return header
