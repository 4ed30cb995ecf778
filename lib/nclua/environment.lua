--- Facts about the machine and the libraries, as found.
local environment = {}

local cuda = require("nclua.cuda")
local files = require("nclua.files")
local nccl = require("nclua.nccl")
local process = require("nclua.process")
local size = require("nclua.size")

---@class environment.fact
---@field [1] string name
---@field [2] string value

local function first_line(path)
  local text = files.read(path)
  return text and text:match("^[^\n]*") or "unknown"
end

local function cpu_model()
  local text = files.read("/proc/cpuinfo") or ""
  return text:match("model name%s*:%s*([^\n]*)") or text:match("CPU part%s*:%s*([^\n]*)")
    or "unknown"
end

-- The CPUs that this process may use: a container may have fewer than the machine.
local function cpus_allowed()
  local text = files.read("/proc/self/status") or ""
  return text:match("Cpus_allowed_list:%s*([^\n]*)") or "unknown"
end

---The CPUs that this process may use.
---@return integer[] cpus from 0, ascending
function environment.cpus()
  local cpus = {}
  for first, last in cpus_allowed():gmatch("(%d+)%-?(%d*)") do
    first = math.tointeger(first)
    for cpu = first, math.tointeger(last) or first do cpus[#cpus + 1] = cpu end
  end
  return cpus
end

local function memory()
  local text = files.read("/proc/meminfo") or ""
  local kib = math.tointeger(text:match("MemTotal:%s*(%d+)"))
  return kib and size.format(kib << 10) or "unknown"
end

---@return integer
function environment.process_id()
  return math.tointeger(files.read("/proc/self/stat"):match("^%d+"))
end

---How this process was started.
---@return string
function environment.command_line()
  local text = files.read("/proc/self/cmdline") or ""
  return (text:gsub("%z$", ""):gsub("%z", " "))
end

---The commit of a working copy, or "unavailable".
---@param folder string
---@return string
function environment.source_commit(folder)
  if folder == "" or not files.exists(folder .. "/.git") then return "unavailable" end
  local result = process.run({ "git", "-C", folder, "rev-parse", "HEAD" })
  return result and result.ok and result.stdout:match("%x+") or "unavailable"
end

---The variables that steer NCCL, CUDA and nclua, sorted.
---@return environment.fact[]
function environment.variables()
  local facts = {}
  local text = files.read("/proc/self/environ") or ""
  for name, value in text:gmatch("([^=%z]+)=([^%z]*)") do
    if name:find("^NCCL_") or name:find("^NCLUA_") or name:find("^CUDA_") then
      facts[#facts + 1] = { "env." .. name, value }
    end
  end
  table.sort(facts, function(a, b) return a[1] < b[1] end)
  return facts
end

---The host. Touches no device.
---@return environment.fact[]
function environment.host()
  return {
    { "hostname", first_line("/proc/sys/kernel/hostname") },
    { "kernel", first_line("/proc/sys/kernel/osrelease") },
    { "cpu", cpu_model() },
    { "cpus_allowed", cpus_allowed() },
    { "memory", memory() },
  }
end

-- Of "cpu 12 0 3 ..." and of /proc/self/stat, whose second field may have any character.
local function numbers(text)
  local list = {}
  for number in text:gmatch("%S+") do list[#list + 1] = tonumber(number) or 0 end
  return list
end

---@class environment.cpu_use
---@field busy integer ticks that all CPUs were busy
---@field idle integer
---@field own integer ticks that this process and its children, those reaped, used

---What the CPUs have done since the machine started.
---@return environment.cpu_use? use nil if /proc does not say
function environment.cpu_use()
  local machine = (files.read("/proc/stat") or ""):match("^cpu +([^\n]+)")
  local process_text = (files.read("/proc/self/stat") or ""):match("^.*%) %a (.*)$")
  if not machine or not process_text then return nil end
  local all, own = numbers(machine), numbers(process_text)
  if #all < 8 or #own < 14 then return nil end
  return {
    busy = all[1] + all[2] + all[3] + all[6] + all[7] + all[8], idle = all[4] + all[5],
    own = own[11] + own[12] + own[13] + own[14], -- utime, stime, cutime, cstime
  }
end

---How much of the CPUs' time went to others between two moments: what a measurement on
---CPUs shares its machine with.
---@param first environment.cpu_use?
---@param last environment.cpu_use?
---@return number? percent
function environment.cpu_of_others(first, last)
  if not first or not last then return nil end
  local busy, idle = last.busy - first.busy, last.idle - first.idle
  if busy + idle <= 0 then return nil end
  local others = math.max(0, busy - (last.own - first.own))
  return math.min(100, 100 * others / (busy + idle))
end

local function describe(device)
  local text = "%s, %s, %s, %s, compute capability %s, %d multiprocessors"
  return text:format(device.name, device.uuid, device.pci_bus_id,
    size.format(device.memory_bytes), device.compute_capability, device.multiprocessors)
end

---The devices and the libraries that were really loaded. Uses a device: for ranks only.
---@return environment.fact[]
function environment.devices()
  local info = assert(nccl.info())
  local facts = {
    { "backend", cuda.backend() },
    { "cuda_driver_version", cuda.driver_version() or "none" },
    { "nccl_version", info.version },
    { "nccl_library", info.library or "built in" },
  }
  for _, device in ipairs(assert(cuda.devices())) do
    facts[#facts + 1] = { "device." .. device.index, describe(device) }
  end
  return facts
end

return environment
