--- nclua.nccl: every collective with several ranks in one process, groups, split, shrink.
local cuda = require("nclua.cuda")
local luaunit = require("luaunit")
local nccl = require("nclua.nccl")
local world = require("bindings.nccl_world")

local RANKS = math.min(4, #assert(cuda.devices()))
local DTYPES = { "i8", "u8", "i32", "u32", "i64", "u64", "f16", "bf16", "f32", "f64" }
local COUNTS = { 0, 1, 7, 64 }
local SUM = RANKS * (RANKS + 1) // 2 -- of 1 to RANKS

local function raises(text, f, ...)
  luaunit.assertErrorMsgContains(text, f, ...)
end

TestModule = {}

function TestModule.test_version_and_info()
  local version = assert(nccl.version())
  local info = assert(nccl.info())
  luaunit.assertStrMatches(version, "%d+%.%d+%.%d+")
  luaunit.assertEquals(info.version, version)
  luaunit.assertEquals(info.backend, cuda.backend())
  luaunit.assertEquals(info.driver, cuda.driver_version())
  luaunit.assertTrue(info.code >= 21200 and #info.library > 0)
  luaunit.assertEquals(info.calibration_date ~= nil, info.backend == "cpu")
end

function TestModule.test_unique_id()
  local a, b = assert(nccl.unique_id()), assert(nccl.unique_id())
  luaunit.assertEquals({ #a, #b }, { 128, 128 })
  luaunit.assertNotEquals(a, b)
end

--- value(r, i): element i of rank r's own vector.
local function own(r, i)
  return r + 1 + i % 3
end

--- What the ranks' vectors, as `own` gives them, come to in element i.
local function total(i)
  return SUM + RANKS * (i % 3)
end

local function part_of(i, n)
  return (i - 1) // n, (i - 1) % n + 1
end

local ROOT = RANKS - 1

--- name, function(w, dtype, n), which makes the calls and checks what came.
local COLLECTIVES = {
  all_reduce = function(w, dtype, n)
    local x, y = w:buffers(dtype, n, own), w:buffers(dtype, n)
    w:each(function(r, comm, s) comm:all_reduce(x[r + 1], y[r + 1], "sum", s) end)
    w:check(y, function(_, i) return total(i) end, "sum")
    w:each(function(r, comm, s) comm:all_reduce(x[r + 1], x[r + 1], "max", s) end)
    w:check(x, function(_, i) return own(ROOT, i) end, "max, in place")
  end,
  reduce = function(w, dtype, n)
    local x, y = w:buffers(dtype, n, own), w:buffers(dtype, n)
    w:each(function(r, comm, s)
      comm:reduce(x[r + 1], r == ROOT and y[r + 1] or nil, "min", ROOT, s)
    end)
    w:check(y, function(r, i) return r == ROOT and own(0, i) or nil end, "min")
    w:each(function(r, comm, s) comm:reduce(x[r + 1], x[r + 1], "sum", 0, s) end)
    w:check({ x[1] }, function(_, i) return total(i) end, "sum, in place")
  end,
  broadcast = function(w, dtype, n)
    local x, y = w:buffers(dtype, n, own), w:buffers(dtype, n)
    w:each(function(r, comm, s)
      comm:broadcast(r == ROOT and x[r + 1] or nil, y[r + 1], ROOT, s)
    end)
    w:check(y, function(_, i) return own(ROOT, i) end, "broadcast")
  end,
  all_gather = function(w, dtype, n)
    local x, y = w:buffers(dtype, n, own), w:buffers(dtype, n * RANKS)
    w:each(function(r, comm, s) comm:all_gather(x[r + 1], y[r + 1], s) end)
    w:check(y, function(_, i) return own(part_of(i, n)) end, "all_gather")
  end,
  reduce_scatter = function(w, dtype, n)
    local x, y = w:buffers(dtype, n * RANKS, own), w:buffers(dtype, n)
    w:each(function(r, comm, s) comm:reduce_scatter(x[r + 1], y[r + 1], "sum", s) end)
    w:check(y, function(r, i) return total(r * n + i) end, "reduce_scatter")
  end,
  all_to_all = function(w, dtype, n)
    local function mark(r, i) return 10 * r + part_of(i, n) end
    local x, y = w:buffers(dtype, n * RANKS, mark), w:buffers(dtype, n * RANKS)
    w:each(function(r, comm, s) comm:all_to_all(x[r + 1], y[r + 1], s) end)
    w:check(y, function(r, i) return 10 * part_of(i, n) + r end, "all_to_all")
  end,
  gather = function(w, dtype, n)
    local x, y = w:buffers(dtype, n, own), w:buffers(dtype, n * RANKS)
    w:each(function(r, comm, s)
      comm:gather(x[r + 1], r == ROOT and y[r + 1] or nil, ROOT, s)
    end)
    w:check(y, function(r, i) return r == ROOT and own(part_of(i, n)) or nil end, "gather")
  end,
  scatter = function(w, dtype, n)
    local x, y = w:buffers(dtype, n * RANKS, own), w:buffers(dtype, n)
    w:each(function(r, comm, s)
      comm:scatter(r == ROOT and x[r + 1] or nil, y[r + 1], ROOT, s)
    end)
    w:check(y, function(r, i) return own(ROOT, r * n + i) end, "scatter")
  end,
  send_recv = function(w, dtype, n)
    local x, y = w:buffers(dtype, n, own), w:buffers(dtype, n)
    w:each(function(r, comm, s)
      comm:send(x[r + 1], (r + 1) % RANKS, s):recv(y[r + 1], (r - 1) % RANKS, s)
    end)
    w:check(y, function(r, i) return own((r - 1) % RANKS, i) end, "send and recv")
  end,
}

TestCollectives = {}

for name, run in pairs(COLLECTIVES) do
  TestCollectives["test_" .. name] = function()
    local w <close> = world.open(RANKS)
    for _, dtype in ipairs(DTYPES) do
      for _, n in ipairs(COUNTS) do run(w, dtype, n) end
    end
  end
end

function TestCollectives.test_in_place_parts()
  local w <close> = world.open(RANKS)
  local n = 5
  local x = w:buffers("f32", n * RANKS, own)
  local function part(r) return x[r + 1]:slice(r * n + 1, n) end
  w:each(function(r, comm, s) comm:all_gather(part(r), x[r + 1], s) end)
  local function gathered(_, i) return own((i - 1) // n, i) end
  w:check(x, gathered, "all_gather")
  w:each(function(r, comm, s) comm:reduce_scatter(x[r + 1], part(r), "sum", s) end)
  for r = 0, RANKS - 1 do
    luaunit.assertEquals(part(r):get(2), RANKS * gathered(r, r * n + 2))
  end
end

function TestCollectives.test_operators()
  local w <close> = world.open(RANKS)
  for _, case in ipairs({
    { "prod", "f32", RANKS == 4 and 24 or nil },
    { "avg", "f64", SUM / RANKS },
    { "avg", "i32", SUM // RANKS },
  }) do
    local op, dtype, expected = table.unpack(case, 1, 3)
    local x = w:buffers(dtype, 10, function(r) return r + 1 end)
    w:each(function(r, comm, s) comm:all_reduce(x[r + 1], x[r + 1], op, s) end)
    if expected then w:check(x, function() return expected end, op .. " of " .. dtype) end
  end
end

function TestCollectives.test_pre_mul_sum()
  local w <close> = world.open(RANKS)
  local x, ops = w:buffers("f32", 10, function() return 2 end), {}
  for r = 0, RANKS - 1 do ops[r] = assert(w.comms[r + 1]:pre_mul_sum(r + 0.5, "f32")) end
  w:each(function(r, comm, s) comm:all_reduce(x[r + 1], x[r + 1], ops[r], s) end)
  w:check(x, function() return 2 * (SUM - RANKS + RANKS / 2) end, "pre_mul_sum")
  luaunit.assertEquals(ops[0].dtype, "f32")
end

--- The default stream is the one of the communicator's device, whichever is current.
function TestCollectives.test_default_stream()
  local w <close> = world.open(RANKS)
  local x = w:buffers("i32", 10, own)
  nccl.group(function()
    for i, comm in ipairs(w.comms) do
      luaunit.assertIs(comm:all_reduce(x[i], x[i], "sum"), comm)
    end
  end)
  w:check(x, function(_, i) return total(i) end, "default streams")
end

function TestCollectives.test_functions_are_methods()
  local comm <close> = assert(nccl.init_all(1))[1]
  local x <close> = cuda.buffer("f32", 4):fill(3)
  local y <close> = cuda.buffer("f32", 4)
  luaunit.assertIs(nccl.all_reduce(comm, x, y, "sum"), comm)
  luaunit.assertEquals(y:get(4), 3)
end

TestGroup = {}

function TestGroup.test_results_and_nesting()
  local w <close> = world.open(RANKS)
  local x = w:buffers("i32", 3, own)
  local results = table.pack(nccl.group(function()
    for i, comm in ipairs(w.comms) do
      nccl.group(function() comm:all_reduce(x[i], x[i], "sum", w.streams[i]) end)
    end
    return 1, nil, 3
  end))
  luaunit.assertEquals(results, { 1, nil, 3, n = 3 })
  w:check(x, function(_, i) return total(i) end, "nested")
  luaunit.assertEquals(select("#", nccl.group(function() end)), 0)
end

function TestGroup.test_errors_go_on_and_end_it()
  local comm <close> = assert(nccl.init_all(1))[1]
  local x <close> = cuda.buffer("i32", 3):fill(1)
  local y <close> = cuda.buffer("i32", 3):fill(0)
  local thrown = {}
  local ok, caught = pcall(nccl.group, function()
    comm:all_reduce(x, y, "sum")
    nccl.group(function() error(thrown) end)
  end)
  luaunit.assertEquals({ ok, caught == thrown }, { false, true })
  luaunit.assertEquals(y:get(1), 1) -- what was called before has been done
  comm:all_reduce(x, y, "avg") -- and no group is left open
  raises("attempt to yield", coroutine.wrap(function()
    nccl.group(coroutine.yield)
  end))
  luaunit.assertEquals(comm:all_reduce(x, y, "sum"):async_error(), "ncclSuccess")
end

function TestGroup.test_misuse()
  raises("function expected", nccl.group)
  raises("not inside nccl.group", nccl.group, function() nccl.init_all(1) end)
  local w <close> = world.open(RANKS)
  local x = w:buffers("i32", RANKS)
  if RANKS > 1 then
    local comm = w.comms[1]
    raises("use nccl.group", comm.all_reduce, comm, x[1], x[1], "sum")
    raises("use nccl.group", comm.send, comm, x[1], 1)
    raises("use nccl.group", comm.split, comm, 0, 0)
  end
  raises("not inside nccl.group", nccl.group, function() w.comms[1]:finalize() end)
end

--- Whatever is closed inside lives until the calls that use it have been made.
function TestGroup.test_closing_inside()
  local comms, y = assert(nccl.init_all(RANKS)), {}
  nccl.group(function()
    for i, comm in ipairs(comms) do
      cuda.set_device(i - 1)
      local x <close> = cuda.buffer("i32", 100000):fill(i)
      local stream <close> = cuda.stream()
      y[i] = cuda.buffer("i32", 100000)
      comm:all_reduce(x, y[i], "sum", stream)
      comm:close()
      raises("closed communicator", comm.all_reduce, comm, x, y[i], "sum", stream)
      raises("closed buffer", function()
        local z = x:slice(1, 1)
        x:close()
        z:get(1)
      end)
    end
    collectgarbage()
  end)
  cuda.set_device(0)
  for i, comm in ipairs(comms) do
    luaunit.assertEquals({ y[i]:compare(SUM) }, { 0 })
    luaunit.assertStrContains(tostring(comm), "closed")
  end
end

TestBirth = {}

function TestBirth.test_fields()
  local comm <close> = assert(nccl.comm({
    id = nccl.unique_id(), rank = 0, count = 1, name = "lonely", device = RANKS - 1,
    min_ctas = 1, max_ctas = 4,
  }))
  luaunit.assertEquals(
    { comm.rank, comm.count, comm.device, comm.name }, { 0, 1, RANKS - 1, "lonely" })
  luaunit.assertStrContains(tostring(comm), "rank 0 of 1")
  luaunit.assertEquals(comm:async_error(), "ncclSuccess")
  luaunit.assertTrue(comm:ready())
  raises("no field 'size'", function() return comm.size end)
end

function TestBirth.test_non_blocking()
  local comm <close> = assert(nccl.comm({
    id = nccl.unique_id(), rank = 0, count = 1, blocking = false,
  }))
  local limit = cuda.now_ns() + 20 * 10 ^ 9
  while not comm:ready() do luaunit.assertTrue(cuda.now_ns() < limit) end
  local x <close> = cuda.buffer("f32", 100):fill(2)
  comm:all_reduce(x, x, "sum")
  luaunit.assertEquals(x:get(100), 2)
  comm:finalize()
end

function TestBirth.test_group_of_ranks()
  local id, comms = assert(nccl.unique_id()), {}
  nccl.group(function()
    for i = 1, RANKS do
      comms[i] = assert(nccl.comm({ id = id, rank = i - 1, count = RANKS, device = i - 1 }))
      raises("before its nccl.group ends", comms[i].async_error, comms[i])
    end
  end)
  local x = {}
  nccl.group(function()
    for i, comm in ipairs(comms) do
      luaunit.assertEquals({ comm.rank, comm.count, comm.device }, { i - 1, RANKS, i - 1 })
      cuda.set_device(i - 1)
      x[i] = cuda.buffer("i32", 4):fill(i)
      comm:all_reduce(x[i], x[i], "sum")
    end
  end)
  cuda.set_device(0)
  for i, comm in ipairs(comms) do
    luaunit.assertEquals(x[i]:get(4), SUM)
    if RANKS > 1 then raises("use nccl.group", comm.all_reduce, comm, x[i], x[i], "sum") end
    comm:close()
  end
end

function TestBirth.test_closed_before_born()
  local comm
  nccl.group(function()
    comm = assert(nccl.comm({ id = nccl.unique_id(), rank = 0, count = 1 }))
    comm:close()
    raises("closed communicator", comm.ready, comm)
  end)
  raises("closed communicator", comm.ready, comm)
end

function TestBirth.test_devices_of_init_all()
  local last = #assert(cuda.devices()) - 1
  local comms = assert(nccl.init_all({ last }))
  luaunit.assertEquals({ comms[1].device, comms[1].count }, { last, 1 })
  comms[1]:close()
  local none, message, code = nccl.init_all({ 0, last + 1 })
  luaunit.assertNil(none)
  luaunit.assertStrContains(message, "no device " .. last + 1)
  luaunit.assertEquals(code, "CUDA_ERROR_INVALID_DEVICE")
  luaunit.assertNil((nccl.comm({
    id = nccl.unique_id(), rank = 0, count = 1, device = last + 1,
  })))
end

function TestBirth.test_split()
  local w <close> = world.open(RANKS)
  local halves = {}
  nccl.group(function()
    for i, comm in ipairs(w.comms) do halves[i] = comm:split((i - 1) % 2, -i) end
  end)
  local x = w:buffers("i32", 3, own)
  for i, half in ipairs(halves) do
    local members = (RANKS - (i - 1) % 2 + 1) // 2
    luaunit.assertEquals(half.count, members)
    luaunit.assertEquals(half.rank, members - 1 - (i - 1) // 2) -- keys turn the order round
    luaunit.assertEquals(half.device, i - 1)
  end
  for _, comm in ipairs(w.comms) do comm:close() end -- children outlive their parents
  nccl.group(function()
    for i, half in ipairs(halves) do half:all_reduce(x[i], x[i], "max", w.streams[i]) end
  end)
  for i, half in ipairs(halves) do
    local last = RANKS - 1 - (RANKS - i) % 2
    luaunit.assertEquals(x[i]:to_table(), { own(last, 1), own(last, 2), own(last, 3) })
    half:close()
  end
end

function TestBirth.test_split_without_color()
  local w <close> = world.open(RANKS)
  local children = nccl.group(function()
    local list = {}
    for i, comm in ipairs(w.comms) do
      local child, message, code = comm:split(i == 1 and 7 or nil, 0, { name = "child" })
      list[i] = child or false
      luaunit.assertEquals(code, i > 1 and "NCCL_SPLIT_NOCOLOR" or nil)
      luaunit.assertEquals(message == nil, i == 1)
    end
    return list
  end)
  luaunit.assertEquals({ children[1].count, children[1].name }, { 1, "child" })
  children[1]:close()
end

function TestBirth.test_shrink()
  luaunit.skipIf(RANKS < 2, "needs two devices")
  local w <close> = world.open(RANKS)
  local small = nccl.group(function()
    local list = {}
    for i = 2, RANKS do list[#list + 1] = assert(w.comms[i]:shrink({ 0 })) end
    return list
  end)
  for i, comm in ipairs(small) do
    luaunit.assertEquals({ comm.rank, comm.count }, { i - 1, RANKS - 1 })
    comm:close()
  end
end
