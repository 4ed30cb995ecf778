--- How each value of the public inputs' expected.json is checked: one function a key.
--- Used by test_corpus.lua alone.
local cjson = require("cjson")
local cost_names = require("nclua.cost_model.names")
local luaunit = require("luaunit")

local checks = {}

local equal, near = luaunit.assertEquals, luaunit.assertAlmostEquals

-- What a reader cannot know, because the cut left it out; the name of the file says it.
local NOT_IN_THE_TEXT = {
  ["s03 nccl"] = "the cut has no version line",
  ["s14 nccl"] = "the cut has no version line",
}

local function first_log(case)
  for _, doc in ipairs(case.docs) do
    if doc.log and (doc.log.totals.messages > 0 or #doc.log.selections > 0) then
      return doc.log
    end
  end
end

local function runs_of(case)
  local runs = {}
  for _, doc in ipairs(case.docs) do
    for _, run in ipairs(doc.tests and doc.tests.runs or {}) do runs[#runs + 1] = run end
  end
  return runs
end

local function group_of(case) return first_log(case).communicators[1] end

local function library_version(code)
  return code and ("%d.%d.%d"):format(code // 10000, code % 10000 // 100, code % 100)
end

local function graphs_of(case)
  local list = {}
  for _, member in ipairs(group_of(case).members) do
    for _, graph in ipairs(member.graphs) do list[#list + 1] = graph end
  end
  return list
end

function checks.kind(case, want)
  local log, group = first_log(case), nil
  if log then group = log.communicators[1] end
  local has = {
    log = log ~= nil, graph = group and #graphs_of(case) > 0,
    tuning = group and group.tuning ~= nil, selection = log and #log.selections > 0,
    tests = #runs_of(case) > 0,
  }
  for _, doc in ipairs(case.docs) do
    local matrix = doc.kind == "nvidia-smi topo" and doc.tables[1].rows[1].kind
    has["topo-xml"] = has["topo-xml"] or doc.kind == "topology"
    has["graph-xml"] = has["graph-xml"] or doc.kind == "graphs"
    has["torch-watchdog"] = has["torch-watchdog"] or doc.kind == "torch watchdog"
    has["smi-topo"] = has["smi-topo"] or matrix == "links"
    has["smi-p2p"] = has["smi-p2p"] or matrix == "peers"
  end
  has["nsys-columns"] = case.schemas ~= nil
  for word in want:gsub(" %(forced%)", ""):gmatch("[^+]+") do
    luaunit.assertTrue(has[word], case.id .. " " .. word)
  end
end

function checks.files(case, want) equal(#case.paths, #want) end

function checks.note() end -- prose

function checks.nccl(case, want)
  local log, run = first_log(case), runs_of(case)[1] or {}
  local got = (log and log.version) or run.nccl or library_version(run.library)
  if NOT_IN_THE_TEXT[case.id .. " nccl"] then return luaunit.assertNil(got) end
  equal(got, want)
end

function checks.nccl_tests(case, want) equal(runs_of(case)[1].version, want) end

function checks.library(case, want) equal(runs_of(case)[1].library, want) end

function checks.cuda(case, want)
  equal(want, cjson.null)
  luaunit.assertNil(first_log(case).cuda)
end

function checks.ranks(case, want)
  local log, run = first_log(case), runs_of(case)[1] or {}
  if log and log.ranks then equal(log.ranks, want) end
  if run.ranks then equal(run.ranks, want) end
  luaunit.assertNotNil((log and log.ranks) or run.ranks)
end

function checks.nodes(case, want)
  local log, run = first_log(case), runs_of(case)[1] or {}
  equal((log and log.ranks and log.nodes) or run.nodes, want)
end

function checks.local_ranks(case, want) equal(group_of(case).local_ranks, want) end

function checks.system(case, want)
  for _, member in ipairs(group_of(case).members) do
    local system = member.system
    if system then
      equal(system.max_bw, want.max_bw or want.max_width)
      equal(system.total_bw, want.total_bw)
      equal(system.is_width, want.max_width ~= nil)
      return
    end
  end
  luaunit.fail("no system")
end

function checks.graphs(case, want)
  local got = graphs_of(case)
  equal(#got, #want)
  for i, graph in ipairs(want) do
    local own = got[i]
    equal({ tostring(own.pattern), own.cross_nic, own.channels, own.bw_intra, own.bw_inter,
      own.type_intra, own.type_inter, own.same_channels and 1 or 0 },
      { graph.pattern, graph.cross_nic, graph.nchannels, graph.bw_intra, graph.bw_inter,
        graph.type_intra, graph.type_inter, graph.same_channels }, case.id .. " " .. i)
  end
end

function checks.graphs_by_host(case, want)
  local got = {}
  for _, member in ipairs(group_of(case).members) do
    local n = #member.graphs
    if n > 0 then got[member.host] = (got[member.host] or 0) + n end
  end
  equal(got, want)
end

function checks.effective_ring_bw_intra(case, want)
  local least = math.huge
  for _, member in ipairs(group_of(case).members) do
    if member.graphs.ring then least = math.min(least, member.graphs.ring.bw_intra) end
  end
  equal(least, want)
end

function checks.coll_channels(case, want) equal(group_of(case).channels.coll, want) end

function checks.channels(case, want)
  local group = group_of(case)
  if type(want) == "number" then return equal(group.declared_channels, want) end
  for name, count in pairs(want) do equal(group.channels[name], count, name) end
end

function checks.tuning(case, want)
  local got = group_of(case).tuning
  for collective, cells in pairs(want) do
    for name, cell in pairs(cells) do
      local algorithm, protocol = name:match("^(.-)/(.*)$")
      local own = got[cost_names.collective(collective)][algorithm][protocol]
      equal({ own.latency_us, own.bandwidth_gbps }, cell, collective .. " " .. name)
    end
  end
end

-- Distinct (collective, size) pairs in order of size, as printed.
local function selections_of(case)
  local list, seen = {}, {}
  for _, one in ipairs(first_log(case).selections) do
    local key = (one.name or "") .. " " .. one.bytes
    if not seen[key] then list[#list + 1] = one end
    seen[key] = true
  end
  return list
end

function checks.selections(case, want)
  local got = selections_of(case)
  equal(#got, #want, case.id)
  for i, one in ipairs(want) do
    local own = got[i]
    equal({ own.bytes, own.algorithm_text, own.protocol_text, own.name, own.time_us },
      { one.bytes, one.algo, one.proto, one.coll, one.time_us }, case.id)
    equal(one.channels and { own.low, own.high }, one.channels, case.id)
  end
end

function checks.selection_lines(case, want)
  local lines = 0
  for _, one in ipairs(first_log(case).selections) do lines = lines + one.times end
  equal(lines, want)
end

function checks.selection_sizes(case, want) equal(#selections_of(case), want) end

function checks.algo_ids(_, want)
  for id, name in pairs(want) do equal(cost_names.algorithm(id), name) end
end

function checks.proto_ids(_, want)
  for id, name in pairs(want) do equal(cost_names.protocol(id), name) end
end

-- The best cell of a printed table: lat + bytes / (1000 bw) where bw > 0.
local function best(table_of, bytes)
  local least, algorithm, protocol = math.huge, nil, nil
  for _, a in ipairs(cost_names.ALGORITHMS) do
    for p, cell in pairs(table_of[a]) do
      local time = cell.latency_us + bytes / (1000 * cell.bandwidth_gbps)
      if cell.bandwidth_gbps > 0 and time < least then
        least, algorithm, protocol = time, a, p
      end
    end
  end
  return least, algorithm, protocol
end

-- Sizes at which the printed table's best cell is not what was selected.
local function wrong_sizes(case, multiplier)
  local sizes = {}
  for _, one in ipairs(selections_of(case)) do
    local table_of = group_of(case).tuning[one.collective]
    local _, algorithm, protocol = best(table_of, one.bytes * multiplier)
    if algorithm ~= one.algorithm or protocol ~= one.protocol then
      sizes[#sizes + 1] = one.bytes
    end
  end
  return sizes
end

local model = { formula = true, why = true, allreduce_why = true, coll = true }

function model.argmin_equals_selection_at_all_sizes(case, want)
  equal(#wrong_sizes(case, 1) == 0, want)
end

function model.argmin_equals_selection_with_multiplier(case, want)
  equal(#wrong_sizes(case, group_of(case).ranks) == 0, want)
end

function model.without_multiplier_wrong_at(case, want) equal(wrong_sizes(case, 1), want) end

function model.allgather_bytes_multiplier(case, want) equal(group_of(case).ranks, want) end

function model.ring_simple_broadcast_bw(case, want)
  equal(group_of(case).tuning.broadcast.Ring.Simple.bandwidth_gbps, want)
end

function model.allreduce_ring_simple_bw(case, want)
  equal(group_of(case).tuning.all_reduce.Ring.Simple.bandwidth_gbps, want)
end

function model.predicted_us(case, want)
  for bytes, time in pairs(want) do
    near(best(group_of(case).tuning.all_reduce, tonumber(bytes)), time, 0.006)
  end
end

local function measured(case, bytes)
  for _, row in ipairs(runs_of(case)[1].rows) do
    if row.size_bytes == tonumber(bytes) then return row.out_of_place.time_us end
  end
end

function model.measured_oop_us(case, want)
  for bytes, time in pairs(want) do equal(measured(case, bytes), time) end
end

function model.model_slower_than_measured(case, want)
  local bytes = next(case.want.model.predicted_us)
  local predicted = best(group_of(case).tuning.all_reduce, tonumber(bytes))
  equal(predicted > measured(case, bytes), want)
end

function model.crossover(case, want)
  local last, first
  for _, one in ipairs(selections_of(case)) do
    if one.protocol == "LL" then last = one.bytes end
    if one.protocol == "Simple" and not first then first = one.bytes end
  end
  equal({ last, first }, { want.last_LL, want.first_SIMPLE })
end

function checks.model(case, want)
  for key, value in pairs(want) do
    luaunit.assertNotNil(model[key], "model." .. key)
    if model[key] ~= true then model[key](case, value) end
  end
end

-- Latency and bandwidth of a line through two of the printed times.
local function line_through(case, small, large)
  local times = {}
  for _, one in ipairs(selections_of(case)) do times[one.bytes] = one.time_us end
  local slope = (times[large] - times[small]) / (large - small)
  return times[small] - slope * small, 1 / (1000 * slope)
end

function checks.derived(case, want)
  local latency, bandwidth = line_through(case, 4 << 20, 1 << 30)
  near(latency, want.ring_simple.lat_us, 0.01)
  near(bandwidth, want.ring_simple.algbw, 1e-4)
  latency, bandwidth = line_through(case, 1 << 17, 1 << 19)
  near(latency, want.ring_ll.lat_us, 0.01)
  near(bandwidth, want.ring_ll.algbw, 1e-4)
  near(line_through(case, 64, 128), want.tree_ll_small.lat_us, 0.01)
end

local tests = { note = true }

function tests.rows(run, want) equal(#run.rows, want) end

function tests.fields_per_row(run, want)
  local seen, counts = {}, {}
  for _, row in ipairs(run.rows) do
    if not seen[#row.tokens] then counts[#counts + 1] = #row.tokens end
    seen[#row.tokens] = true
  end
  equal(counts, want)
end

function tests.header_fields(run, want) equal(#run.labels, want) end

function tests.first_bytes(run, want) equal(run.rows[1].size_bytes, want) end

function tests.last_bytes(run, want) equal(run.rows[#run.rows].size_bytes, want) end

function tests.last_row(run, want) equal(run.rows[#run.rows].tokens, want) end

function tests.avg_busbw(run, want) equal(run.average_busbw_gbps, want) end

function tests.out_of_bounds(run, want) equal(run.out_of_bounds, want) end

function tests.status(run, want) equal(run.status, want) end

function tests.complete(run, want) equal(run.complete, want) end

function tests.env(run, want) equal(run.env, want) end

function tests.collective(run, want) equal(run.collective, want) end

function tests.ranks(run, want) equal(run.ranks, want) end

function tests.root(run, want) equal(run.rows[1].root, want) end

function tests.in_place_wrong(run, want)
  equal(run.rows[1].tokens[#run.rows[1].tokens], want)
  luaunit.assertNil(run.rows[1].in_place.wrong)
end

function tests.zero_size_rows(run, want)
  local count = 0
  for _, row in ipairs(run.rows) do
    if row.size_bytes == 0 then count = count + 1 end
  end
  equal(count, want)
end

function checks.tests(case, want)
  local runs = runs_of(case)
  equal(#runs, #want, case.id)
  for i, one in ipairs(want) do
    for key, value in pairs(one) do
      luaunit.assertNotNil(tests[key], "tests." .. key)
      if tests[key] ~= true then tests[key](runs[i], value) end
    end
  end
end

function checks.devices(case, want)
  local names = {}
  for i, device in ipairs(runs_of(case)[1].devices) do names[i] = device.name end
  equal(names, want)
end

function checks.device_lines(case, want) equal(#runs_of(case)[1].devices, want) end

function checks.timeouts(case, want)
  for i, one in ipairs(want) do
    local own = case.docs[1].log.watchdog.timeouts[i]
    equal({ own.rank, own.sequence, own.operation, own.elements_in, own.timeout_ms,
      own.ran_ms }, { one.rank, one.seq, one.op, one.numel_in, one.timeout_ms, one.ran_ms })
  end
end

function checks.pg_status(case, want)
  for i, one in ipairs(want) do
    local own = case.docs[1].log.watchdog.pg_status[i]
    local name = one.pg_name ~= cjson.null and one.pg_name or nil
    equal({ own.rank, own.group_id, own.group_name, own.sequence, own.enqueued,
      own.completed }, { one.rank, one.pg_id, name, one.seq, one.enqueued, one.completed })
  end
end

return checks
