--- NCCL's topology and graph XML (dumps and hand-written ones) into one structure each.
--- Pure: text in, tables out.
local xml = require("nclua.xml")

local topology = {}

---@class nclua.topology.system
---@field kind "system"
---@field cpus table[] numa, affinity, arch, vendor, family, model
---@field pci table[] busid, class, vendor, device, speed, width, cpu, parent (busid)
---@field switches table[] the pci entries that have others below them
---@field gpus table[] dev, rank, sm, gdr, busid, cpu, nvlinks = { {target, count} }
---@field nics table[] busid, cpu, nets = { {name, dev, speed_mbps, port, guid, gdr, …} }
---@field nets table[] every <net>; virtual ones stand under each CPU
---@field distinct_nets table[] each net once
---@field is_by_class boolean the GPUs were told by PCI class only: no <gpu> elements

---@class nclua.topology.graph
---@field id integer 0 ring, 1 tree, 2 collnet chain, 3 nvls, 4 collnet direct
---@field pattern integer
---@field channels integer as declared
---@field bw_intra number GB/s a channel
---@field bw_inter number
---@field type_intra string
---@field type_inter string
---@field same_channels boolean
---@field cross_nic integer
---@field latency_inter_us number
---@field paths table[] one a channel: lists of { kind = "gpu"|"net", dev }

-- "0x1", "12", "1a" (bare hexadecimal in bus ids is not passed here); nil if not a number.
local function number(text)
  if not text then return nil end
  return math.tointeger(tonumber(text)) or tonumber(text)
end

local GPU_CLASSES = { ["0x030200"] = true, ["0x030000"] = true }
local NIC_CLASSES = { ["0x020700"] = true, ["0x020000"] = true }

local visit

local function visit_net(system, element, nic)
  local a = element.attributes
  local net = {
    name = a.name, dev = number(a.dev), speed_mbps = number(a.speed), port = number(a.port),
    guid = a.guid, gdr = a.gdr == "1", latency_us = number(a.latency),
    max_connections = number(a.maxconn), is_collnet = a.coll == "1",
  }
  table.insert(nic.nets, net)
  table.insert(system.nets, net)
  local key = ("%s/%s/%s"):format(a.name, a.guid, a.port)
  if not system.seen_nets[key] then
    system.seen_nets[key] = true
    table.insert(system.distinct_nets, net)
  end
end

local function visit_nic(system, element, place)
  local nic = { busid = place.busid, cpu = place.cpu, nets = {} }
  table.insert(system.nics, nic)
  for _, child in ipairs(element.children) do
    if child.name == "net" then visit_net(system, child, nic) end
  end
end

local function visit_gpu(system, element, place)
  local a = element.attributes
  local gpu = {
    dev = number(a.dev), rank = number(a.rank), sm = number(a.sm), gdr = a.gdr == "1",
    busid = place.busid, cpu = place.cpu, nvlinks = {},
  }
  for _, child in ipairs(element.children) do
    if child.name == "nvlink" then
      table.insert(gpu.nvlinks, {
        target = child.attributes.target, count = number(child.attributes.count) or 0,
        class = child.attributes.tclass,
      })
    end
  end
  table.insert(system.gpus, gpu)
end

local function visit_pci(system, element, place)
  local a = element.attributes
  local entry = {
    busid = a.busid, class = a.class, vendor = a.vendor, device = a.device,
    speed = a.link_speed, width = number(a.link_width), cpu = place.cpu,
    parent = place.busid,
  }
  table.insert(system.pci, entry)
  for _, child in ipairs(element.children) do
    if child.name == "pci" then entry.is_switch = true end
  end
  if entry.is_switch then table.insert(system.switches, entry) end
  visit(system, element, { cpu = place.cpu, busid = a.busid })
end

local function visit_cpu(system, element)
  local a = element.attributes
  table.insert(system.cpus, {
    numa = number(a.numaid), affinity = a.affinity, arch = a.arch, vendor = a.vendor,
    family = number(a.familyid), model = number(a.modelid), host_hash = a.host_hash,
  })
  visit(system, element, { cpu = #system.cpus })
end

local VISITORS = { pci = visit_pci, gpu = visit_gpu, nic = visit_nic, cpu = visit_cpu }

function visit(system, element, place)
  for _, child in ipairs(element.children) do
    local visitor = VISITORS[child.name]
    if visitor then
      visitor(system, child, place)
    else
      table.insert(system.warnings, ("<%s> was not understood"):format(child.name))
    end
  end
end

-- A file written by hand for NCCL_TOPO_FILE may hold pci leaves only, told apart by class.
local function add_by_class(system)
  if #system.gpus > 0 then return end
  for _, entry in ipairs(system.pci) do
    if GPU_CLASSES[entry.class] then
      system.is_by_class = true
      table.insert(system.gpus, { busid = entry.busid, cpu = entry.cpu, nvlinks = {} })
    elseif NIC_CLASSES[entry.class] then
      table.insert(system.nics, { busid = entry.busid, cpu = entry.cpu, nets = {} })
    end
  end
end

local function read_system(root)
  local system = {
    kind = "system", version = root.attributes.version, cpus = {}, pci = {}, switches = {},
    gpus = {}, nics = {}, nets = {}, distinct_nets = {}, seen_nets = {}, warnings = {},
    is_by_class = false,
  }
  visit(system, root, {})
  add_by_class(system)
  system.seen_nets = nil
  return system
end

local function read_graph(element)
  local a = element.attributes
  local graph = {
    id = number(a.id), pattern = number(a.pattern), channels = number(a.nchannels),
    cross_nic = number(a.crossnic), bw_intra = number(a.speedintra),
    bw_inter = number(a.speedinter), latency_inter_us = number(a.latencyinter),
    type_intra = a.typeintra, type_inter = a.typeinter,
    same_channels = a.samechannels == "1", paths = {},
  }
  for _, channel in ipairs(element.children) do
    local path = {}
    for _, hop in ipairs(channel.children) do
      table.insert(path, { kind = hop.name, dev = number(hop.attributes.dev) })
    end
    table.insert(graph.paths, path)
  end
  return graph
end

local function read_graphs(root)
  local graphs = { kind = "graphs", version = root.attributes.version, warnings = {} }
  for _, element in ipairs(root.children) do
    local graph = element.name == "graph" and read_graph(element)
    if graph and graph.channels then
      table.insert(graphs, graph)
      if #graph.paths ~= graph.channels then
        table.insert(graphs.warnings, ("graph %s declares %s channels and has %d"):format(
          graph.id, graph.channels, #graph.paths))
      end
    else
      table.insert(graphs.warnings, ("<%s> was not understood"):format(element.name))
    end
  end
  return graphs
end

--- Reads a topology (`<system>`) or graph (`<graphs>`) file.
---@param text string
---@return nclua.topology.system|nclua.topology.graph[]|nil result
---@return string? message
---@return string? code "EINVAL"
function topology.parse(text)
  local root, message, code = xml.parse(text)
  if not root then return nil, message, code end
  if root.name == "system" then return read_system(root) end
  if root.name == "graphs" then return read_graphs(root) end
  message = ("<%s> is neither NCCL's <system> nor its <graphs>"):format(root.name)
  return nil, message, "EINVAL"
end

local GRAPH_NAMES = {
  [0] = "ring", "tree", "collnet_chain", "nvls", "collnet_direct",
}

--- The graphs by the names that the cost model uses: ring, tree, …
---@param graphs nclua.topology.graph[]
---@return table<string, nclua.topology.graph>
function topology.by_name(graphs)
  local named = {}
  for _, graph in ipairs(graphs) do
    local name = GRAPH_NAMES[graph.id]
    if name then named[name] = graph end
  end
  return named
end

return topology
