--- NCCL's topology and graph files.
local document = require("nclua.read.document")
local topology = require("nclua.parse.topology")

local xml = {}

local function add_system(doc, system)
  local links = {}
  for _, gpu in ipairs(system.gpus) do
    gpu.nvlink_count = 0
    for _, link in ipairs(gpu.nvlinks) do
      gpu.nvlink_count = gpu.nvlink_count + link.count
      links[#links + 1] = { from = gpu.busid, to = link.target, count = link.count,
        class = link.class }
    end
  end
  for _, name in ipairs({ "cpus", "pci", "switches", "gpus", "nics", "nets" }) do
    doc:fact(name, #system[name])
  end
  doc:fact("distinct nets", #system.distinct_nets)
  if system.is_by_class then doc:fact("GPUs", "told by their PCI class only") end
  doc:table("gpus", { "busid", "dev", "rank", "sm", "gdr", "cpu", "nvlink_count" },
    system.gpus)
  doc:table("nvlinks", { "from", "to", "count", "class" }, links)
  doc:table("nets", { "name", "dev", "speed_mbps", "port", "guid", "gdr", "latency_us" },
    system.distinct_nets)
  doc:table("cpus", { "numa", "affinity", "arch", "vendor", "family", "model" },
    system.cpus)
  doc:table("pci", { "busid", "class", "vendor", "device", "speed", "width", "cpu",
    "parent" }, system.pci)
end

local function add_graphs(doc, graphs)
  local paths = {}
  for _, graph in ipairs(graphs) do
    for channel, hops in ipairs(graph.paths) do
      local words = {}
      for i, hop in ipairs(hops) do
        words[i] = ("%s/%s"):format(hop.kind:upper(), hop.dev or "?")
      end
      paths[#paths + 1] = { id = graph.id, channel = channel - 1,
        path = table.concat(words, " ") }
    end
  end
  doc:table("graphs", { "id", "pattern", "channels", "bw_intra", "bw_inter", "type_intra",
    "type_inter", "same_channels", "cross_nic", "latency_inter_us" }, graphs)
  doc:table("paths", { "id", "channel", "path" }, paths)
end

---@param source table
---@return nclua.read.document? document
---@return string? message
function xml.read(source)
  local text, message = source.all()
  if not text then return nil, message end
  local result, why = topology.parse(text)
  if not result then return nil, why end
  local doc = document.new(result.kind == "system" and "topology" or "graphs")
  doc.topology = result
  doc:fact("file version", result.version)
  if result.kind == "system" then add_system(doc, result) else add_graphs(doc, result) end
  for _, warning in ipairs(result.warnings) do doc:problem(warning) end
  return doc
end

return xml
