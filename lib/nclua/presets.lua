--- Graph facts of well-known machines, as their "Pattern" lines print them, for
--- predictions without a machine. Each row says where its numbers are from; "assumed" ones
--- follow from data sheets by NCCL's search rules and have not been seen.
local presets = {}

local function graph(pattern, channels, intra, inter, type_intra, type_inter, is_same)
  return {
    pattern = pattern, channels = channels, bw_intra = intra, bw_inter = inter,
    type_intra = type_intra, type_inter = type_inter, same_channels = is_same or false,
  }
end

---@class nclua.preset
---@field title string
---@field gpus integer a node
---@field cc integer compute capability × 10
---@field cpu_vendor string
---@field nvswitches integer
---@field nvls_channels integer 0: none
---@field single table graphs of one node
---@field multi table graphs of several nodes
---@field single_source string
---@field multi_source string

local ASSUMED = "assumed from data sheets; not verified"

---@type table<string, nclua.preset>
presets.machines = {
  ["dgx-1v"] = {
    title = "DGX-1V: 8 V100, NVLink mesh, 4 EDR InfiniBand", gpus = 8, cc = 70,
    cpu_vendor = "intel", nvswitches = 0, nvls_channels = 0,
    single = { ring = graph(4, 6, 20, 20, "NVL", "PIX"),
      tree = graph(1, 6, 20, 20, "NVL", "PIX") },
    multi = { ring = graph(4, 4, 12, 12, "NVL", "PIX"),
      tree = graph(1, 4, 12, 12, "NVL", "PIX") },
    single_source = ASSUMED, multi_source = ASSUMED,
  },
  ["dgx-a100"] = {
    title = "DGX A100: 8 A100, NVSwitch, 8 HDR InfiniBand", gpus = 8, cc = 80,
    cpu_vendor = "amd", nvswitches = 1, nvls_channels = 0,
    single = { ring = graph(4, 12, 20, 20, "NVL", "PIX", true),
      tree = graph(1, 12, 20, 20, "NVL", "PIX") },
    multi = { ring = graph(4, 8, 24, 24, "NVL", "PXB"),
      tree = graph(1, 8, 24, 24, "NVL", "PXB") },
    single_source = "12 channels as a 2.27.7 log of NVLinked A100s has them; bandwidth "
      .. "assumed", multi_source = ASSUMED,
  },
  ["dgx-h100"] = {
    title = "DGX H100: 8 H100, NVSwitch with NVLS, 8 NDR InfiniBand", gpus = 8, cc = 90,
    cpu_vendor = "intel", nvswitches = 1, nvls_channels = 16,
    single = { ring = graph(4, 12, 30, 30, "NVL", "PIX", true),
      tree = graph(1, 12, 30, 30, "NVL", "PIX"),
      nvls = graph(5, 16, 20, 20, "NVL", "PIX") },
    multi = { ring = graph(4, 8, 24, 24, "NVL", "PIX"),
      tree = graph(3, 8, 24, 24, "NVL", "PIX"),
      nvls = graph(5, 8, 24, 24, "NVL", "PIX") },
    single_source = "ring: a published 8 x H100 time agrees in every digit; nvls assumed",
    multi_source = "ring and tree: published times of 3 x 8 H100 agree in every digit; "
      .. "nvls assumed",
  },
  ["dgx-h200"] = {
    title = "DGX H200: 8 H200, as DGX H100", gpus = 8, cc = 90, cpu_vendor = "intel",
    nvswitches = 1, nvls_channels = 16, like = "dgx-h100",
  },
  ["hgx-b200"] = {
    title = "HGX B200: 8 B200, NVLink 5, 8 NDR InfiniBand", gpus = 8, cc = 100,
    cpu_vendor = "intel", nvswitches = 1, nvls_channels = 24,
    single = { ring = graph(4, 16, 45, 45, "NVL", "PIX", true),
      tree = graph(1, 16, 45, 45, "NVL", "PIX"),
      nvls = graph(5, 24, 30, 30, "NVL", "PIX") },
    multi = { ring = graph(4, 8, 48, 48, "NVL", "PIX"),
      tree = graph(3, 8, 48, 48, "NVL", "PIX"),
      nvls = graph(5, 8, 48, 48, "NVL", "PIX") },
    single_source = ASSUMED, multi_source = ASSUMED,
  },
  ["pcie-4"] = {
    title = "4 GPUs on PCIe 4 across two sockets, one 100 Gb NIC", gpus = 4, cc = 80,
    cpu_vendor = "intel", nvswitches = 0, nvls_channels = 0,
    single = { ring = graph(4, 2, 10, 10, "SYS", "PIX"),
      tree = graph(1, 2, 10, 10, "SYS", "PIX") },
    multi = { ring = graph(4, 2, 6, 6, "SYS", "PHB"),
      tree = graph(1, 2, 6, 6, "SYS", "PHB") },
    single_source = ASSUMED, multi_source = ASSUMED,
  },
}

--- The names in order.
---@return string[]
function presets.names()
  local list = {}
  for name in pairs(presets.machines) do list[#list + 1] = name end
  table.sort(list)
  return list
end

--- A machine's system for the cost model.
---@param name string
---@param nodes integer
---@param version string NCCL's
---@return nclua.cost_model.system? system
---@return string source_or_message where the graphs are from; or why there is no system
function presets.system(name, nodes, version)
  local machine = presets.machines[name]
  if not machine then
    return nil, ("unknown preset '%s': expected %s"):format(name,
      table.concat(presets.names(), ", "))
  end
  local facts = machine.like and presets.machines[machine.like] or machine
  local is_single = nodes == 1
  return {
    version = version, nodes = nodes, ranks = nodes * machine.gpus, cc = machine.cc,
    cpu_vendor = machine.cpu_vendor, nvswitches = machine.nvswitches,
    nvls_channels = machine.nvls_channels,
    graphs = is_single and facts.single or facts.multi,
  }, is_single and facts.single_source or facts.multi_source
end

return presets
