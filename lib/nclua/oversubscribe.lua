--- More ranks than devices. NCCL refuses two ranks on one GPU of one host, but not on hosts
--- that only differ in name (NCCL_HOSTID; seen working with 2.28): ranks that come round to
--- the first GPU again stand on the next pretended host and talk through the loopback
--- interface. Sums, logs, tables and hangs are real; times are not: GPUs are time-sliced.
local oversubscribe = {}

---@class oversubscribe.place where one rank runs
---@field device integer from 0
---@field env table<string, string> variables to set in the rank

--- The CPU backend has as many devices as it is told to have.
local function on_cpus(index, ranks)
  return { device = index, env = { NCLUA_CPU_DEVICES = tostring(ranks) } }
end

---What rank `index` of `ranks` needs on so many devices. An interface that is `given` in
---the environment stays; NCCL_NVLS_ENABLE is left alone.
---@param backend "cpu"|"cuda"
---@param index integer from 0
---@param ranks integer
---@param devices integer at least 1
---@param given? fun(name: string): string? default: os.getenv
---@return oversubscribe.place
function oversubscribe.place(backend, index, ranks, devices, given)
  if backend == "cpu" then return on_cpus(index, ranks) end
  local env = { NCCL_HOSTID = ("nclua-host-%d"):format(index // devices) }
  if not (given or os.getenv)("NCCL_SOCKET_IFNAME") then env.NCCL_SOCKET_IFNAME = "lo" end
  return { device = index % devices, env = env }
end

---How many hosts NCCL believes in.
---@param ranks integer
---@param devices integer
---@return integer
function oversubscribe.hosts(ranks, devices)
  return (ranks + devices - 1) // devices
end

return oversubscribe
