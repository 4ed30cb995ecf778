--- Topology, graph and smi readers: small fixtures of our own, and public files where they
--- are at hand.
local cjson = require("cjson")
local lfs = require("lfs")
local luaunit = require("luaunit")
local smi = require("nclua.parse.smi")
local topology = require("nclua.parse.topology")

local CORPUS = "../shared/corpus/"

local SYSTEM = [[
<system version="1">
  <cpu numaid="1" affinity="ff" arch="x86_64" vendor="AuthenticAMD" familyid="25">
    <pci busid="0000:10:00.0" class="0x060400" link_speed="16.0 GT/s PCIe" link_width="16">
      <pci busid="0000:11:00.0" class="0x030200" vendor="0x10de">
        <gpu dev="0" sm="90" rank="3" gdr="1">
          <nvlink target="0000:aa:00.0" count="5" tclass="0x068000"/>
          <nvlink target="0000:ab:00.0" count="4" tclass="0x068000"/>
        </gpu>
      </pci>
      <pci busid="0000:12:00.0" class="0x020000">
        <nic>
          <net name="ib0" dev="0" speed="400000" port="1" guid="0x1" gdr="1"/>
          <net name="ib1" dev="1" speed="400000" port="2" guid="0x1" gdr="0"/>
        </nic>
      </pci>
    </pci>
    <nic><net name="ib0" dev="0" speed="400000" port="1" guid="0x1"/></nic>
  </cpu>
</system>
]]

TestTopology = {}

function TestTopology.test_system()
  local system = assert(topology.parse(SYSTEM))
  luaunit.assertEquals(system.kind, "system")
  luaunit.assertEquals(#system.cpus, 1)
  luaunit.assertEquals(system.cpus[1].numa, 1)
  luaunit.assertEquals(#system.pci, 3)
  luaunit.assertEquals(#system.switches, 1)
  local gpu = system.gpus[1]
  luaunit.assertEquals({ gpu.dev, gpu.rank, gpu.sm }, { 0, 3, 90 })
  luaunit.assertEquals(gpu.busid, "0000:11:00.0")
  luaunit.assertEquals(gpu.nvlinks[2].count, 4)
  luaunit.assertEquals(#system.nics, 2)
  luaunit.assertEquals({ #system.nets, #system.distinct_nets }, { 3, 2 })
end

function TestTopology.test_bad_input()
  for _, case in ipairs({
    { "<system><cpu></system>", "line 1: mismatched tag" },
    { "", "line 1: no element found" },
    { "<html/>", "<html> is neither NCCL's <system> nor its <graphs>" },
    { "<!DOCTYPE a [<!ENTITY b 'c'>]><a>&b;</a>", "entity declarations are refused" },
    { ("<a>"):rep(300), "nested more than 200 deep" },
    { "<system\0/>", "line 1: " },
  }) do
    local result, message, code = topology.parse(case[1])
    luaunit.assertNil(result)
    luaunit.assertStrContains(message, case[2])
    luaunit.assertEquals(code, "EINVAL")
  end
end

function TestTopology.test_graphs()
  local graphs = assert(topology.parse([[
    <graphs version="1">
      <graph id="0" pattern="4" crossnic="0" nchannels="1" speedintra="12.5"
        speedinter="12.5" latencyinter="0" typeintra="NVL" typeinter="PIX"
        samechannels="1">
        <channel><net dev="0"/><gpu dev="0x1"/><gpu dev="0"/><net dev="0"/></channel>
      </graph>
      <graph id="3" pattern="5" nchannels="2" speedintra="0" typeintra="LOC"/>
    </graphs>]]))
  luaunit.assertEquals(#graphs, 2)
  local ring = topology.by_name(graphs).ring
  luaunit.assertEquals(ring.bw_intra, 12.5)
  luaunit.assertEquals(ring.paths[1][2], { kind = "gpu", dev = 1 })
  luaunit.assertEquals(graphs.warnings, { "graph 3 declares 2 channels and has 0" })
end

function TestTopology.test_smi()
  local header = "\t\27[4mGPU0\tGPU1\tNIC0\tCPU Affinity\tNUMA Affinity\27[0m\n"
  local matrices = smi.parse(header .. [[
GPU0	 X 	NV12	PXB	0-31	0
GPU1	NV12	 X 	SYS	32-63	1
NIC0	PXB	SYS	 X

NIC Legend:

  NIC0: mlx5_0
]])
  luaunit.assertEquals(#matrices, 1)
  local m = matrices[1]
  luaunit.assertEquals({ m.kind, m.gpus, m.cells.GPU0.GPU1 }, { "links", 2, "NV12" })
  luaunit.assertEquals(smi.nvlinks(m.cells.GPU0.GPU1), 12)
  luaunit.assertEquals(m.numa_affinity.GPU1, "1")
  luaunit.assertEquals(m.legend.NIC0, "mlx5_0")
end

local function read(name)
  local file <close> = assert(io.open(CORPUS .. name))
  return file:read("a")
end

local function count_links(system)
  local elements, links = 0, 0
  for _, gpu in ipairs(system.gpus) do
    for _, link in ipairs(gpu.nvlinks) do
      elements = elements + 1
      links = links + link.count
    end
  end
  return elements, links
end

local function list_links(system)
  local list = {}
  for _, gpu in ipairs(system.gpus) do
    for _, link in ipairs(gpu.nvlinks) do
      table.insert(list, { from = gpu.busid, to = link.target, count = link.count })
    end
  end
  return list
end

local function of_class(system, class)
  local n = 0
  for _, entry in ipairs(system.pci) do n = n + (entry.class == class and 1 or 0) end
  return n
end

-- How each value of an expectation is read off a system.
local SYSTEM_VALUES = {
  cpus = function(s) return #s.cpus end,
  pci = function(s) return #s.pci end,
  switches = function(s) return #s.switches end,
  nics = function(s) return #s.nics end,
  gpus = function(s) return s.is_by_class and 0 or #s.gpus end,
  nets = function(s) return #s.nets end,
  net_speed = function(s) return s.nets[1].speed_mbps end,
  nvlinks = function(s, want)
    return type(want) == "table" and list_links(s) or select(2, count_links(s))
  end,
  nvlink_elements = function(s) return (count_links(s)) end,
  nvlinks_total = function(s) return (select(2, count_links(s))) end,
  nvlinks_per_gpu = function(s) return select(2, count_links(s)) // #s.gpus end,
  class_0x030200 = function(s) return of_class(s, "0x030200") end,
  class_0x020700 = function(s) return of_class(s, "0x020700") end,
}

local function check_system(id, files, want)
  for _, name in ipairs(files) do
    local system = name:match("topo.*%.xml$") and assert(topology.parse(read(name)))
    for key, value in pairs(system and want or {}) do
      if SYSTEM_VALUES[key] then
        luaunit.assertEquals(SYSTEM_VALUES[key](system, value), value, id .. " " .. key)
      end
    end
  end
end

local function check_graphs(id, file, want)
  local graphs = assert(topology.parse(read(file)))
  for i, row in ipairs(want) do
    luaunit.assertEquals(
      { graphs[i].id, graphs[i].pattern, graphs[i].channels, graphs[i].bw_intra },
      { row.id, row.pattern, row.nchannels, row.speedintra }, id)
  end
end

local function check_matrices(id, files, want)
  local at = 0
  for _, name in ipairs(files) do
    for _, matrix in ipairs(smi.parse(read(name))) do
      at = at + 1
      local row = want[at]
      luaunit.assertEquals(matrix.gpus, row.gpus, id)
      local link = row.link or row.all
      luaunit.assertEquals(matrix.cells.GPU0.GPU1, link, id)
      luaunit.assertEquals(matrix.kind, row.all and "peers" or "links", id)
      if row.cpu then luaunit.assertEquals(matrix.cpu_affinity.GPU0, row.cpu, id) end
      for i, numa in ipairs(row.numa or {}) do
        luaunit.assertEquals(matrix.numa_affinity["GPU" .. i - 1], ("%d"):format(numa), id)
      end
    end
  end
  luaunit.assertEquals(at, #want, id)
end

function TestTopology.test_public_files()
  if not lfs.attributes(CORPUS) then luaunit.skip("no public files at " .. CORPUS) end
  for id, want in pairs(cjson.decode(read("expected.json"))) do
    if want.topo_xml then check_system(id, want.files, want.topo_xml) end
    if want.graph_xml then check_graphs(id, want.files[1], want.graph_xml) end
    if want.matrices then check_matrices(id, want.files, want.matrices) end
    if want.graph_xml_ids then
      local ids = {}
      for i, graph in ipairs(assert(topology.parse(read(want.files[1])))) do
        ids[i] = graph.id
      end
      luaunit.assertEquals(ids, want.graph_xml_ids, id)
    end
  end
end
