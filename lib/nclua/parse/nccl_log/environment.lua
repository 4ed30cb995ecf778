--- What a process says of itself: versions, variables, plugins, the network.
local foreign = require("nclua.parse.foreign")

local environment = { HANDLERS = {} }

local MOST_VALUES, MOST_PLUGINS, MOST_VERSIONS = 1024, 256, 64

local function process_of(self, thread)
  return thread > 0 and self.scanner:thread(thread).process or ""
end

-- "NCCL version 2.28.3+cuda13.0"; a build may print "+cudaCUDA_MAJOR.CUDA_MINOR".
function environment.HANDLERS.version(self, text, line, thread)
  local printed = text:match("^%s*NCCL version (%S+)")
  if not printed then return end -- "NCCL git version": the branch it was built from
  local number = printed:match("^%d+%.%d+%.?%d*")
  if not number then return self:issue(line, "a version that is no number", text) end
  if not self.version then
    self.version, self.cuda = number, printed:match("%+cuda(%d+%.%d+)$")
  end
  local key = printed .. "\0" .. process_of(self, thread)
  if self.version_seen[key] then return end
  local known = 0
  for _ in pairs(self.version_seen) do known = known + 1 end
  if known == MOST_VALUES then return self:leave_out("versions") end
  self.version_seen[key] = true
  self.versions[printed] = (self.versions[printed] or 0) + 1
end

function environment.HANDLERS.driver(self, text)
  self.driver = self.driver or math.tointeger(tonumber(text:match("(%d+)")))
end

function environment.HANDLERS.network(self, text)
  self.network = self.network or foreign.trim(text):match("^Using network (.*)$")
end

local VARIABLE = "^(NCCL_[%w_]+) set by environment to ?(.*)$"

-- "NCCL_ALGO set by environment to Ring"; numbers end in a full stop.
function environment.HANDLERS.env(self, text, line, thread, is_glued)
  local name, value = foreign.trim(text):match(VARIABLE)
  if not name or is_glued then return self:issue(line, "a variable that was cut", text) end
  value = value:match("^(%-?%d+)%.$") or value
  local key = name .. "=" .. value
  local entry = self.env[key]
  if not entry then
    if #self.env == MOST_VALUES then return self:leave_out("environment variables") end
    entry = { name = name, value = value:sub(1, 500), first_line = line, seen = {} }
    entry.processes = 0
    self.env[key] = entry
    self.env[#self.env + 1] = entry
  end
  local process = process_of(self, thread)
  if entry.seen[process] or entry.processes == MOST_VALUES then return end
  entry.seen[process] = true
  entry.processes = entry.processes + 1
end

--- The variables in the order in which they came.
function environment.list(self)
  local list = {}
  for i, entry in ipairs(self.env) do
    local processes = {}
    for process in pairs(entry.seen) do processes[#processes + 1] = process end
    table.sort(processes)
    list[i] = { name = entry.name, value = entry.value, processes = processes,
      first_line = entry.first_line }
  end
  return list
end

-- Which plugins were looked for, found and used; each message once.
function environment.HANDLERS.plugin(self, text, line)
  local entry = self.plugins[text]
  if not entry then
    if #self.plugins == MOST_PLUGINS then return self:leave_out("plugin lines") end
    entry = { text = text:sub(1, 500), times = 0, first_line = line }
    self.plugins[#self.plugins + 1] = entry
    self.plugins[text] = entry
  end
  entry.times = entry.times + 1
end

environment.MOST_VERSIONS = MOST_VERSIONS

return environment
