--- A parsed NCCL log into a document.
local log_tables = {}

local GRAPH_COLUMNS = {
  "communicator", "rank", "host", "name", "pattern", "channels", "bw_intra_gbps",
  "bw_inter_gbps", "type_intra", "type_inter", "same_channels", "cross_nic",
}

local function add_graphs(doc, log)
  local rows = {}
  for number, group in ipairs(log.communicators) do
    for _, member in ipairs(group.members) do
      for _, graph in ipairs(member.graphs) do
        rows[#rows + 1] = {
          communicator = number, rank = member.rank, host = member.host, name = graph.name,
          pattern = graph.pattern, channels = graph.channels,
          bw_intra_gbps = graph.bw_intra, bw_inter_gbps = graph.bw_inter,
          type_intra = graph.type_intra, type_inter = graph.type_inter,
          same_channels = graph.same_channels, cross_nic = graph.cross_nic,
        }
      end
    end
  end
  doc:table("graphs", GRAPH_COLUMNS, rows)
end

local function add_communicators(doc, log)
  local groups, ranks = {}, {}
  for number, group in ipairs(log.communicators) do
    local channels = group.channels or {}
    groups[number] = {
      communicator = number, id = group.id, ranks = group.ranks, nodes = group.nodes,
      local_ranks = group.local_ranks, seen = #group.members,
      coll_channels = channels.coll or group.declared_channels,
      nvls_channels = channels.nvls, p2p_channels = channels.p2p,
    }
    for _, member in ipairs(group.members) do
      ranks[#ranks + 1] = {
        communicator = number, rank = member.rank, process = member.process,
        device = member.cuda_device or member.device, bus_id = member.bus_id,
        comm = member.comm, state = member.state,
        init_s = member.timings_s and member.timings_s.total,
      }
    end
  end
  doc:table("communicators", { "communicator", "id", "ranks", "nodes", "local_ranks",
    "seen", "coll_channels", "nvls_channels", "p2p_channels" }, groups)
  doc:table("ranks", { "communicator", "rank", "process", "device", "bus_id", "comm",
    "state", "init_s" }, ranks)
end

local function add_cells(rows, number, collective, algorithms)
  for algorithm, protocols in pairs(algorithms) do
    for protocol, cell in pairs(protocols) do
      rows[#rows + 1] = {
        communicator = number, collective = collective, algorithm = algorithm,
        protocol = protocol, latency_us = cell.latency_us,
        bandwidth_gbps = cell.bandwidth_gbps,
        is_off = cell.bandwidth_gbps == 0 and 1 or 0,
      }
    end
  end
end

local CELL_ORDER = { "communicator", "collective", "is_off", "algorithm", "protocol" }

-- Cells that are in use come first.
local function by_cell(a, b)
  for _, key in ipairs(CELL_ORDER) do
    if a[key] ~= b[key] then return a[key] < b[key] end
  end
  return false
end

local function add_model(doc, log)
  local rows = {}
  for number, group in ipairs(log.communicators) do
    for collective, algorithms in pairs(group.tuning or {}) do
      add_cells(rows, number, collective, algorithms)
    end
  end
  table.sort(rows, by_cell)
  doc:table("model", { "communicator", "collective", "algorithm", "protocol", "latency_us",
    "bandwidth_gbps" }, rows)
end

-- Tables that are the parser's records as they are.
local RECORDS = {
  { "selections", { "name", "bytes", "algorithm", "protocol", "channels", "time_us", "form",
    "times", "process", "device", "first_line", "last_line" } },
  { "operations", { "name", "elements", "datatype", "op", "root", "ranks", "in_place",
    "times", "process", "comm", "first_op_count", "last_op_count", "first_line",
    "last_line" } },
  { "connections", { "from", "to", "via", "direction", "low", "high", "times", "process",
    "first_line", "last_line" } },
  { "plugins", { "text", "times", "first_line" } },
  { "warnings", { "place", "text", "times", "process", "first_line" } },
}

local function add_env(doc, log)
  local rows = {}
  for i, entry in ipairs(log.env) do
    rows[i] = { name = entry.name, value = entry.value, processes = #entry.processes }
  end
  doc:table("environment", { "name", "value", "processes" }, rows)
end

local function add_links(doc, log)
  local rows = {}
  for i, link in ipairs(log.links) do
    rows[i] = { kind = link.kind, up = link.up, rank = link.rank,
      down = table.concat(link.down, "/"), low = link.low, high = link.high,
      times = link.times }
  end
  doc:table("links", { "kind", "up", "rank", "down", "low", "high", "times" }, rows)
end

local function add_problems(doc, log)
  for _, issue in ipairs(log.issues) do doc:problem(issue.why, issue.text, issue.line) end
  doc.problem_count = doc.problem_count + log.issue_count - #log.issues
  local names = {}
  for name in pairs(log.left_out) do names[#names + 1] = name end
  table.sort(names)
  for _, name in ipairs(names) do
    doc:problem(("%s beyond what is kept apart: %d"):format(name, log.left_out[name]))
  end
end

---@param doc nclua.read.document
---@param log nclua.nccl_log.result
function log_tables.add(doc, log)
  doc:fact("NCCL", log.version)
  doc:fact("built with CUDA", log.cuda)
  doc:fact("driver", log.driver and ("CUDA %d.%d"):format(log.driver // 1000,
    log.driver % 1000 // 10))
  doc:fact("ranks", log.ranks)
  doc:fact("nodes", log.nodes)
  doc:fact("network", log.network)
  doc:fact("lines", log.totals.lines)
  doc:fact("log messages", log.totals.messages)
  add_communicators(doc, log)
  add_graphs(doc, log)
  add_model(doc, log)
  for _, record in ipairs(RECORDS) do doc:table(record[1], record[2], log[record[1]]) end
  add_links(doc, log)
  add_env(doc, log)
  doc:table("other_messages", { "sample", "times", "first_line", "last_line" }, log.others)
  add_problems(doc, log)
end

return log_tables
