--- nclua.nccl refuses wrong arguments before the library sees them, and says why.
local cuda = require("nclua.cuda")
local luaunit = require("luaunit")
local nccl = require("nclua.nccl")
local world = require("bindings.nccl_world")

local RANKS = 2

--- One of each kind, for the cases below; made for every test and closed after it.
local w, comm, other, x, y, half, wide, bytes, far, stream, far_stream, op

TestArguments = {}

function TestArguments.setUp()
  luaunit.skipIf(#assert(cuda.devices()) < RANKS, "needs two devices")
  w = world.open(RANKS)
  comm, other = w.comms[1], assert(nccl.init_all(1))[1]
  x, y = assert(cuda.buffer("f32", 8)), assert(cuda.buffer("f32", 8))
  half, wide = assert(cuda.buffer("f32", 4)), assert(cuda.buffer("f32", 16))
  bytes, stream = assert(cuda.buffer("u8", 8)), assert(cuda.stream())
  op = assert(comm:pre_mul_sum(2, "f32"))
  cuda.set_device(1)
  far, far_stream = assert(cuda.buffer("f32", 8)), assert(cuda.stream())
  cuda.set_device(0)
end

function TestArguments.tearDown()
  w:__close()
  other:close()
end

--- Each: what the error says, method, a function that gives the arguments.
local CASES = {
  { "#1 to 'all_reduce' (cuda.buffer expected, got no value)", "all_reduce",
    function() end },
  { "#1 to 'all_reduce' (cuda.buffer expected, got table)", "all_reduce",
    function() return {}, y, "sum" end },
  { "#2 to 'all_reduce' (cuda.buffer expected, got cuda.stream)", "all_reduce",
    function() return x, stream, "sum" end },
  { "#2 to 'all_reduce' (cuda.buffer expected, got nil)", "all_reduce",
    function() return x, nil, "sum" end },
  { "#2 to 'all_reduce' (recv: expected f32 as in send, got u8)", "all_reduce",
    function() return x, bytes, "sum" end },
  { "#2 to 'all_reduce' (recv: expected 8 elements, got 4)", "all_reduce",
    function() return x, half, "sum" end },
  { "#2 to 'all_reduce' (recv: overlaps send", "all_reduce",
    function() return wide:slice(1, 8), wide:slice(5, 8), "sum" end },
  { "#3 to 'all_reduce' (string expected, got no value)", "all_reduce",
    function() return x, y end },
  { "'max', 'min' or 'avg' (did you mean 'sum'?), got 'sun'", "all_reduce",
    function() return x, y, "sun" end },
  { "#3 to 'all_reduce' (op: made for f32, the buffers hold u8)", "all_reduce",
    function() return bytes, bytes, op end },
  { "#3 to 'all_reduce' (nccl.op expected, got cuda.stream)", "all_reduce",
    function() return x, y, stream end },
  { "#4 to 'all_reduce' (cuda.stream expected, got number)", "all_reduce",
    function() return x, y, "sum", 1 end },
  { "#1 to 'all_reduce' (send: expected a buffer on device 0, got device 1)", "all_reduce",
    function() return far, y, "sum" end },
  { "#2 to 'all_reduce' (recv: expected a buffer on device 0, got device 1)", "all_reduce",
    function() return x, far, "sum" end },
  { "device", "all_reduce", function() return x, y, "sum", far_stream end },

  { "#4 to 'reduce' (root: expected 0 to 1, got 2)", "reduce",
    function() return x, y, "sum", 2 end },
  { "#4 to 'reduce' (number expected, got no value)", "reduce",
    function() return x, y, "sum" end },
  { "#2 to 'reduce' (cuda.buffer expected, got nil)", "reduce",
    function() return x, nil, "sum", 0 end },
  { "#2 to 'reduce' (recv: expected 8 elements, got 4)", "reduce",
    function() return x, half, "sum", 1 end },
  { "#3 to 'broadcast' (root: expected 0 to 1, got -1)", "broadcast",
    function() return x, y, -1 end },
  { "#1 to 'broadcast' (cuda.buffer expected, got nil)", "broadcast",
    function() return nil, y, 0 end },
  { "#2 to 'broadcast' (cuda.buffer expected, got nil)", "broadcast",
    function() return x, nil, 1 end },

  { "#2 to 'all_gather' (recv: expected 16 elements, got 8)", "all_gather",
    function() return x, y end },
  { "#2 to 'all_gather' (recv: overlaps send", "all_gather",
    function() return wide:slice(9, 8), wide end },
  { "#1 to 'reduce_scatter' (send: expected 16 elements, got 8)", "reduce_scatter",
    function() return x, y, "sum" end },
  { "#2 to 'reduce_scatter' (recv: expected f32 as in send, got u8)", "reduce_scatter",
    function() return wide, bytes, "sum" end },
  { "#2 to 'all_to_all' (recv: expected 8 elements, got 16)", "all_to_all",
    function() return x, wide end },
  { "#1 to 'all_to_all' (send: expected a multiple of 2 elements", "all_to_all",
    function() return x:slice(1, 3), y:slice(1, 3) end },
  { "#2 to 'all_to_all' (recv: overlaps send", "all_to_all",
    function() return x, x end },
  { "#2 to 'gather' (recv: expected 16 elements, got 8)", "gather",
    function() return x, y, 0 end },
  { "#2 to 'gather' (cuda.buffer expected, got nil)", "gather",
    function() return x, nil, 0 end },
  { "#1 to 'scatter' (send: expected 16 elements, got 8)", "scatter",
    function() return x, y, 0 end },
  { "#3 to 'scatter' (root: expected 0 to 1, got 7)", "scatter",
    function() return wide, y, 7 end },

  { "#1 to 'send' (buffer: expected a buffer on device 0, got device 1)", "send",
    function() return far, 1 end },
  { "#2 to 'send' (peer: expected 0 to 1, got 2)", "send",
    function() return x, 2 end },
  { "#2 to 'recv' (number has no integer representation)", "recv",
    function() return x, 0.5 end },

  { "#1 to 'pre_mul_sum' (number expected, got string)", "pre_mul_sum",
    function() return "two", "f32" end },
  { "did you mean 'f32'?", "pre_mul_sum", function() return 2, "f33" end },
  { "#1 to 'pre_mul_sum'", "pre_mul_sum", function() return 1000, "i8" end },
  { "#1 to 'register' (cuda.buffer expected, got nil)", "register",
    function() return nil end },
  { "#1 to 'register' (expected a buffer on device 0, got 1)", "register",
    function() return far end },
  { "unknown option 'symetric'", "window", function() return x, { symetric = true } end },

  { "#2 to 'split' (number expected, got no value)", "split", function() return 0 end },
  { "#1 to 'split' (expected 0 to", "split", function() return -1, 0 end },
  { "unknown option 'rank'", "split", function() return 0, 0, { rank = 1 } end },
  { "min_ctas 4 exceeds max_ctas 2", "split",
    function() return 0, 0, { min_ctas = 4, max_ctas = 2 } end },
  { "#1 to 'shrink' (table expected", "shrink", function() return 1 end },
  { "#1 to 'shrink' (expected 1 to 1 ranks", "shrink", function() return {} end },
  { "other than the caller's own", "shrink", function() return { 0 } end },
  { "other than the caller's own", "shrink", function() return { 2 } end },
  { "option 'abort': expected a boolean", "shrink",
    function() return { 1 }, { abort = 1 } end },
}

--- A call by name, for errors name the method and count its arguments without self.
local function caller(method)
  return assert(load(("local self, arguments = ... self:%s(arguments())"):format(method)))
end

--- Nothing may be enqueued by a refused call: the group that each is in ends well.
function TestArguments.test_refused()
  for i, case in ipairs(CASES) do
    local text, method, arguments = table.unpack(case, 1, 3)
    nccl.group(function()
      local ok, message = pcall(caller(method), comm, arguments)
      local label = ("case %d, %s: %s"):format(i, method, message)
      luaunit.assertFalse(ok, label)
      luaunit.assertStrContains(message, text, false, false, label)
    end)
  end
  luaunit.assertEquals(comm:async_error(), "ncclSuccess")
end

function TestArguments.test_operators_of_others()
  luaunit.assertErrorMsgContains(
    "op: made by another communicator", other.all_reduce, other, x, y, op)
  local own = assert(other:pre_mul_sum(3, "f32"))
  own:close()
  luaunit.assertErrorMsgContains(
    "op: the operator or its communicator is closed", other.all_reduce, other, x, y, own)
end

function TestArguments.test_overlaps_that_are_fine()
  other:all_reduce(wide:slice(1, 8), wide:slice(9, 8), "sum")
  other:all_gather(wide:slice(3, 2), wide:slice(3, 2)) -- one rank: the part is the whole
  other:all_reduce(x:slice(4, 0), x:slice(4, 0), "sum")
end

function TestArguments.test_options_of_comm()
  local id = assert(nccl.unique_id())
  for _, case in ipairs({
    { "table expected", nil },
    { "option 'id' is required", {} },
    { "option 'rank' is required", { id = id } },
    { "option 'count' is required", { id = id, rank = 0 } },
    { "128 bytes", { id = "short", rank = 0, count = 1 } },
    { "128 bytes", { id = 1, rank = 0, count = 1 } },
    { "expected less than 'count'", { id = id, rank = 1, count = 1 } },
    { "option 'rank'", { id = id, rank = -1, count = 1 } },
    { "option 'count'", { id = id, rank = 0, count = 0 } },
    { "option 'device'", { id = id, rank = 0, count = 1, device = -1 } },
    { "option 'min_ctas'", { id = id, rank = 0, count = 1, min_ctas = 0 } },
    { "option 'blocking'", { id = id, rank = 0, count = 1, blocking = 1 } },
    { "did you mean 'count'?", { id = id, rank = 0, count = 1, coumt = 1 } },
    { "'efficiency'", { id = id, rank = 0, count = 1, cta_policy = "effort" } },
    { "NUL", { id = id, rank = 0, count = 1, name = "a\0b" } },
  }) do
    luaunit.assertErrorMsgContains(case[1], nccl.comm, case[2])
  end
end

function TestArguments.test_devices_of_init_all()
  for _, case in ipairs({
    { "number of devices or list of devices expected", nil },
    { "expected", "two" },
    { "expected 1 to", 0 },
    { "expected", 1.5 },
    { "expected 1 to", {} },
    { "device indices", { "a" } },
    { "device indices", { -1 } },
    { "device indices", { 0.5 } },
    { "twice", { 0, 1, 0 } },
  }) do
    luaunit.assertErrorMsgContains(case[1], nccl.init_all, case[2])
  end
end
