--- More of corpus_checks.lua: topologies, graphs, matrices, traces.
local cjson = require("cjson")
local files = require("nclua.files")
local luaunit = require("luaunit")
local nsys = require("nclua.parse.nsys")
local scratch = require("scratch")
local smi = require("nclua.parse.smi")
local sqlite = require("nclua.sqlite")

local checks = {}

local equal = luaunit.assertEquals

local function topology_of(case, kind)
  for _, doc in ipairs(case.docs) do
    if doc.kind == kind then return doc.topology end
  end
  luaunit.fail(case.id .. ": no " .. kind)
end

local function field_of(list, field)
  local values = {}
  for i, one in ipairs(list) do values[i] = one[field] end
  return values
end

local topo = { note = true }

for _, name in ipairs({ "cpus", "pci", "switches", "nics", "nets" }) do
  topo[name] = function(system, want) equal(#system[name], want, name) end
end

function topo.gpus(system, want)
  equal(system.is_by_class and 0 or #system.gpus, want)
end

local function count_links(system)
  local elements, total = 0, 0
  for _, gpu in ipairs(system.gpus) do
    for _, link in ipairs(gpu.nvlinks) do
      elements, total = elements + 1, total + link.count
    end
  end
  return elements, total
end

function topo.nvlinks(system, want)
  if type(want) == "number" then return equal((count_links(system)), want) end
  for i, link in ipairs(want) do
    local gpu = system.gpus[i]
    equal({ gpu.busid, gpu.nvlinks[1].target, gpu.nvlinks[1].count },
      { link.from, link.to, link.count })
  end
end

function topo.nvlink_elements(system, want) equal((count_links(system)), want) end

function topo.nvlinks_total(system, want) equal(select(2, count_links(system)), want) end

function topo.nvlinks_per_gpu(system, want)
  equal(select(2, count_links(system)) / #system.gpus, want)
end

function topo.net_name(system, want) equal(system.nets[1].name, want) end

function topo.net_speed(system, want) equal(system.nets[1].speed_mbps, want) end

function topo.gpu_sm(system, want) equal(field_of(system.gpus, "sm"), want) end

function topo.gpu_devs(system, want) equal(field_of(system.gpus, "dev"), want) end

function topo.gpu_ranks(system, want) equal(field_of(system.gpus, "rank"), want) end

local function check_class(system, class, want)
  local count = 0
  for _, entry in ipairs(system.pci) do
    if entry.class == class then count = count + 1 end
  end
  equal(count, want, class)
end

function checks.topo_xml(case, want)
  local system = topology_of(case, "topology")
  for key, value in pairs(want) do
    local class = key:match("^class_(.*)")
    if class then
      check_class(system, class, value)
    else
      luaunit.assertNotNil(topo[key], "topo_xml." .. key)
      if topo[key] ~= true then topo[key](system, value) end
    end
  end
end

function checks.graph_xml(case, want)
  local graphs = topology_of(case, "graphs")
  for i, one in ipairs(want) do
    equal({ graphs[i].id, graphs[i].pattern, graphs[i].channels, graphs[i].bw_intra },
      { one.id, one.pattern, one.nchannels, one.speedintra })
  end
end

function checks.channels_total(case, want)
  local total = 0
  for _, graph in ipairs(topology_of(case, "graphs")) do total = total + #graph.paths end
  equal(total, want)
end

function checks.graph_xml_ids(case, want)
  equal(field_of(topology_of(case, "graphs"), "id"), want)
end

function checks.ring(case, want)
  local ring = topology_of(case, "graphs")[1]
  equal({ ring.pattern, ring.channels, field_of(ring.paths[1], "dev") },
    { want.pattern, want.nchannels, want.devs })
end

function checks.empty_graphs(case, want)
  local empty = 0
  for _, graph in ipairs(topology_of(case, "graphs")) do
    if graph.channels == 0 then empty = empty + 1 end
  end
  equal(empty, want)
end

local function matrices_of(case)
  local all = {}
  for _, path in ipairs(case.paths) do
    local matrices = smi.parse(assert(files.read(path)))
    table.move(matrices, 1, #matrices, #all + 1, all)
  end
  return all
end

-- All cells between GPUs are this.
local function check_cells(matrix, want)
  for from, row in pairs(matrix.cells) do
    for to, cell in pairs(row) do
      local is_gpu = from:find("^GPU") and to:find("^GPU")
      if is_gpu and from ~= to then equal(cell, want) end
    end
  end
end

local matrix_checks = {
  gpus = function(matrix, want) equal(matrix.gpus, want) end,
  link = check_cells, all = check_cells,
  nvlinks = function(matrix, want) equal(smi.nvlinks(matrix.cells.GPU0.GPU1), want) end,
  cpu = function(matrix, want) equal(matrix.cpu_affinity.GPU0, want) end,
  numa = function(matrix, want)
    for i, node in ipairs(want) do
      equal(matrix.numa_affinity["GPU" .. i - 1], ("%d"):format(node))
    end
  end,
}

function checks.matrices(case, want)
  local matrices = matrices_of(case)
  equal(#matrices, #want)
  for i, one in ipairs(want) do
    for key, value in pairs(one) do
      luaunit.assertNotNil(matrix_checks[key], "matrices." .. key)
      matrix_checks[key](matrices[i], value)
    end
  end
end

function checks.is_link_matrix(case, want)
  equal(matrices_of(case)[1].kind == "links", want)
end

--- The schemas of a list of columns: variant → list of { table, columns }.
function checks.read_schemas(path)
  local schemas = { order = {} }
  for line in io.lines(path) do
    local variant, name, columns = line:match("^([^#\t]+)\t([^\t]+)\t(.*)$")
    if variant then
      if not schemas[variant] then
        schemas[variant] = {}
        table.insert(schemas.order, variant)
      end
      table.insert(schemas[variant], { name, columns })
    end
  end
  return schemas
end

-- A database of a schema, opened as a trace.
local function with_trace(schema, check)
  local folder <close> = scratch.folder()
  local path = folder.path .. "/trace.sqlite"
  local db = assert(sqlite.open(path))
  for _, one in ipairs(schema) do
    local columns = one[2]:gsub("[%w_]+", '"%0"')
    db:exec(("create table %s (%s)"):format(one[1], columns))
  end
  db:close()
  local trace <close> = assert(nsys.open(path))
  check(trace)
end

function checks.variants(case, want) equal(#case.schemas.order, want) end

function checks.kernel_name_column(case, want)
  for variant, column in pairs(want) do
    with_trace(case.schemas[variant], function(trace)
      equal(trace.name_column, column ~= cjson.null and column or nil, variant)
      luaunit.assertTrue(trace.has_kernels, variant)
    end)
  end
end

function checks.kernel_table_absent_in(case, want)
  for _, variant in ipairs(want) do
    with_trace(case.schemas[variant], function(trace)
      luaunit.assertFalse(trace.has_kernels, variant)
    end)
  end
end

return checks
