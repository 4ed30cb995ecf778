--- Graph search lines and the topology that NCCL prints before them.
local foreign = require("nclua.parse.foreign")
local context = require("nclua.parse.nccl_log.context")

local graph = { HANDLERS = {} }

local MOST_GRAPHS, MOST_HOPS, MOST_NODES = 8, 64, 1024

local LINE = "^Pattern (%d+), crossNic (%d+), nChannels (%d+), %a+ ([%d.]+)/([%d.]+),"
  .. ".- type (%w+)/?(%w*), sameChannels (%d+)"

local NAMES = { [3] = "collnet_chain", [5] = "nvls", [6] = "collnet_direct" }

-- NCCL prints ring, tree, then what there is of collnet and NVLS.
local function name_of(graphs, pattern)
  if not graphs[1] then return "ring" end
  if not graphs[2] then return "tree" end
  return NAMES[pattern]
end

-- A ring is the first graph: a second one belongs to another communicator.
local function context_for(self, thread, line, pattern)
  local one = context.of(self, thread, line)
  if one and pattern == 4 and #one.graphs > 0 then
    return context.fresh(self, thread, line)
  end
  return one
end

local function new_graph(text)
  local pattern, cross, channels, intra, inter, type_intra, type_inter, same =
    text:match(LINE)
  if not pattern then return nil end
  return {
    pattern = math.tointeger(pattern), cross_nic = math.tointeger(cross),
    channels = math.tointeger(channels), bw_intra = tonumber(intra),
    bw_inter = tonumber(inter), type_intra = type_intra,
    type_inter = type_inter ~= "" and type_inter or type_intra,
    same_channels = same ~= "0", paths = {},
  }
end

function graph.HANDLERS.graph(self, text, line, thread)
  if text:find("^Could not find a path") then
    local one = context.of(self, thread, line)
    if one then one.has_simple_order = true end
    return
  end
  local new = new_graph(text)
  if not new or not new.bw_intra or not new.bw_inter then
    return self:issue(line, "a graph line that was cut", text)
  end
  local one = context_for(self, thread, line, new.pattern)
  if not one or #one.graphs == MOST_GRAPHS then return end
  new.name = name_of(one.graphs, new.pattern)
  table.insert(one.graphs, new)
  if new.name then one.graphs[new.name] = new end
end

-- Lines about something that was not there; or was left out, when there is too much.
local function homeless(self, line, why, text)
  if not self.is_full then self:issue(line, why, text) end
end

-- " 0 : NET/0 GPU/0 GPU/1 NET/0"
function graph.HANDLERS.hops(self, text, line, thread, is_glued)
  if is_glued then
    return self:issue(line, "a graph's channel that another message ran into", text)
  end
  local one = self.threads[thread]
  local last = one and one.graphs[#one.graphs]
  if not last then return homeless(self, line, "a channel of no graph", text) end
  if #last.paths == MOST_HOPS then return end
  table.insert(last.paths, self:keep(foreign.trim(text):match("^%d+ :%s*(.*)$")))
end

-- "=== System : maxBw 240.0 totalBw 240.0 ===", "maxWidth 252.0" up to 2.13
function graph.HANDLERS.system(self, text, line, thread)
  local one = self.threads[thread]
  if text:find("^====") then
    if one then one.is_in_system = nil end
    return
  end
  local kind, most = text:match("max(%a+) ([%d.]+)")
  if not kind then return self:issue(line, "a system line that was cut", text) end
  one = context.of(self, thread, line)
  if not one then return end
  if #one.graphs > 0 then one = context.fresh(self, thread, line) end
  if not one then return end
  one.system = {
    max_bw = tonumber(most), total_bw = tonumber(text:match("total%a+ ([%d.]+)")),
    is_width = kind == "Width", nodes = {}, paths = {},
  }
end

-- "CPU/0-0 (1/1/2)": architecture, vendor, model
local ARCHITECTURES = { ["1"] = "x86", ["2"] = "power", ["3"] = "arm" }
local VENDORS = { ["1"] = "intel", ["2"] = "amd", ["3"] = "zhaoxin" }

local function read_cpu(system, text)
  local architecture, vendor = text:match("^CPU/%S+ %((%d+)/(%d+)/")
  if not architecture or system.cpu_arch then return end
  system.cpu_arch = ARCHITECTURES[architecture]
  system.cpu_vendor = VENDORS[vendor]
end

function graph.HANDLERS.node(self, text, line, thread)
  local one = self.threads[thread]
  local system = one and one.system
  if not system then return homeless(self, line, "a topology line of no system", text) end
  read_cpu(system, text)
  if text:find("NVS/", 1, true) then system.has_nvswitch = true end
  if #system.nodes < MOST_NODES then table.insert(system.nodes, self:keep(text)) end
end

function graph.HANDLERS.paths(self, text, line, thread)
  local one = self.threads[thread]
  local system = one and one.system
  if not system then return homeless(self, line, "topology paths of no system", text) end
  if #system.paths < MOST_NODES then table.insert(system.paths, self:keep(text)) end
end

return graph
