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
