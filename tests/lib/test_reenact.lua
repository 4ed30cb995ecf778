--- Every element of all_reduces on 2 to 8 ranks, re-enacted bit for bit.
local elements = require("nclua.elements")
local luaunit = require("luaunit")
local ranks = require("nclua.ranks")
local reenact = require("nclua.reenact")

local eq, is_true = luaunit.assertEquals, luaunit.assertTrue

local COUNTS = { 1, 331, 40009 }
local OPS = { "sum", "prod", "max", "min", "avg" }
local DTYPES = { "f16", "bf16", "f32" }

--- Magnitudes so far apart that the order of additions shows.
local function input_of(rank, op)
  local values = {}
  for i = 1, COUNTS[#COUNTS] do
    local scale = op == "prod" and 1 or 2 ^ math.random(-6, 6)
    values[i] = (math.random() + 0.5) * scale * (math.random(2) * 2 - 3)
  end
  values[1] = rank == 0 and 0 / 0 or -0.0
  return values
end

--- All ranks' inputs, which the backend carries unchanged (as bytes).
local function gather(comm, own)
  local cuda = require("nclua.cuda")
  local send <close> = assert(cuda.buffer("u8", #own)):copy_from(own)
  local all <close> = assert(cuda.buffer("u8", #own * comm.count))
  comm:all_gather(send, all)
  cuda.synchronize()
  local text, inputs = all:to_string(), {}
  for r = 1, comm.count do inputs[r] = text:sub((r - 1) * #own + 1, r * #own) end
  return inputs
end

local function check_case(rank, comm, case)
  local cpu, cuda = require("nclua.cpu"), require("nclua.cuda")
  local x <close> = assert(cuda.buffer(case.dtype, case.count))
  x:copy_from(table.move(case.values, 1, case.count, 1, {}))
  local inputs = gather(comm, x:to_string())
  local steps = assert(cpu.trace(function()
    comm:all_reduce(x, x, case.op)
    cuda.synchronize()
  end))
  local chunks = reenact.chunks(steps)
  local want = reenact.all_reduce(inputs, { dtype = case.dtype, op = case.op,
    algorithm = steps[1].algorithm, chunks = chunks })
  local name = ("%s %s %d %s"):format(case.dtype, case.op, case.count, steps[1].algorithm)
  rank:check(name, x:to_string() == want, { protocol = steps[1].protocol })
  rank:emit("case", { chunks = #chunks, channels = chunks[#chunks].channel + 1,
    algorithm = steps[1].algorithm })
end

local function check_all(rank)
  local comm <close> = rank:comm()
  math.randomseed(rank.index + 1)
  for _, op in ipairs(OPS) do
    local values = input_of(rank.index, op)
    for _, dtype in ipairs(DTYPES) do
      for _, count in ipairs(COUNTS) do
        check_case(rank, comm, { op = op, dtype = dtype, count = count, values = values })
      end
    end
  end
end

local function run(n, algorithm, env)
  local report = assert(ranks.run({ n = n, fn = check_all, oversubscribe = true,
    env = { NCCL_ALGO = "allreduce:" .. algorithm, NCCL_PROTO = env.protocol,
      NCCL_MIN_NCHANNELS = env.channels } }))
  eq(#report.checks, n * #OPS * #DTYPES * #COUNTS)
  for _, check in ipairs(report.checks) do
    is_true(check.ok, ("rank %d of %d: %s"):format(check.rank, n, check.name))
  end
  local chunks, channels = 0, 0
  for _, one in ipairs(report.rows) do
    eq(one.row.algorithm:lower(), algorithm)
    chunks = math.max(chunks, one.row.chunks)
    channels = math.max(channels, one.row.channels)
  end
  return chunks, channels
end

TestReenact = {}

for _, algorithm in ipairs({ "ring", "tree" }) do
  TestReenact["test_" .. algorithm] = function()
    for n = 2, 8 do
      local chunks = run(n, algorithm, { protocol = false, channels = false })
      is_true(chunks > 1, "a message of several chunks")
    end
  end

  TestReenact[("test_%s_on_channels"):format(algorithm)] = function()
    for n, protocol in pairs({ [3] = "LL128", [4] = "Simple", [5] = "LL" }) do
      local _, channels = run(n, algorithm, { protocol = protocol, channels = 4 })
      is_true(channels > 1, "a message on several channels")
    end
  end
end

function TestReenact.test_order_of_the_ring()
  local function order(n, channel, index)
    return reenact.order("Ring", n, { channel = channel, index = index })
  end
  eq(order(4, 0, 0), { 1, 2, 3, 0 })
  eq(order(4, 0, 5), { 2, 3, 0, 1 })
  eq(order(4, 1, 0), { 3, 2, 1, 0 })
  eq(order(5, 2, 0), { 2, 4, 1, 3, 0 })
end

function TestReenact.test_order_of_the_tree()
  local function order(n, channel)
    return reenact.order("Tree", n, { channel = channel, index = 0 })
  end
  eq(order(2, 0), { 0, 1 })
  eq(order(5, 0), { 0, { 4, { 2, 1, 3 } } })
  eq(order(4, 1), { 3, { 1, 2, 0 } })
  eq(order(3, 1), { 1, { 0, 2 } })
  luaunit.assertErrorMsgContains("PAT", reenact.order, "PAT", 2, {})
end

--- The comparison can fail: another order gives other sums.
function TestReenact.test_order_matters()
  local inputs = {}
  for r, value in ipairs({ 2 ^ 24, 1, 1 }) do inputs[r] = string.pack("<f", value) end
  local function sum(index)
    local chunks = { { channel = 0, index = index, offset = 0, bytes = 4 } }
    return (string.unpack("<f", reenact.all_reduce(inputs,
      { dtype = "f32", op = "sum", algorithm = "Ring", chunks = chunks })))
  end
  eq({ sum(0), sum(1) }, { 2 ^ 24 + 2, 2 ^ 24 })
  eq(elements.reduce("f32", "sum", inputs[1], inputs[2]), inputs[1])
end
