--- A script's own kernels. The CPU backend refuses them; through the look-alikes of
--- tests/stub/ and on a GPU they run. (The look-alike knows only the names that are in
--- host/cuda/kernels.cu, so the source here has one of those.)
local cuda = require("nclua.cuda")
local luaunit = require("luaunit")

local eq, contains = luaunit.assertEquals, luaunit.assertStrContains

local SOURCE = [[
extern "C" __global__ void nclua_fill(void *to, unsigned long long count,
                                      unsigned long long bits) {
  unsigned long long i = (unsigned long long)blockIdx.x * blockDim.x + threadIdx.x;
  for (; i < count; i += (unsigned long long)gridDim.x * blockDim.x) {
    ((unsigned long long *)to)[i] = bits;
  }
}]]

local GRID = { grid = 2, block = 32 }

local function kernel_or_skip()
  local kernel, message, code = cuda.kernel(SOURCE, "nclua_fill")
  luaunit.skipIf(code == "ENOTSUP" or code == "no_library", message)
  return assert(kernel, message)
end

local function raises(text, fn, ...)
  local ok, message = pcall(fn, ...)
  luaunit.assertFalse(ok)
  contains(tostring(message), text)
end

TestKernel = {}

function TestKernel.test_cpu_backend_refuses()
  luaunit.skipIf(cuda.backend() ~= "cpu", "the backend is a GPU's")
  local kernel, message, code = cuda.kernel(SOURCE, "nclua_fill")
  eq(kernel, nil)
  eq(code, "ENOTSUP")
  contains(message, "kernels need a GPU")
end

function TestKernel.test_launch()
  local kernel <close> = kernel_or_skip()
  local x <close> = assert(cuda.buffer("u64", 1000)):fill(1)
  eq(kernel:launch(GRID, x:slice(11, 980), { "u64", 980 }, { "u64", 77 }), kernel)
  eq(x:compare(77), 20)
  eq(x:slice(11, 980):compare(77), 0)
  eq(x:get(10), 1)
  eq(x:get(991), 1)
end

function TestKernel.test_on_a_stream_and_in_a_graph()
  local kernel = kernel_or_skip()
  local stream <close> = assert(cuda.stream())
  local x = assert(cuda.buffer("i64", 100)):fill(0)
  local options = { grid = { 1, 1, 1 }, block = { 64 }, shared_bytes = 0, stream = stream }
  local graph = assert(stream:capture(function()
    kernel:launch(options, x, { "u64", 100 }, { "i64", -3 })
  end))
  stream:sync()
  eq(x:compare(0), 0)
  graph:launch(stream)
  stream:sync()
  eq(x:compare(-3), 0)
  kernel:close() -- and with it the graph
  raises("closed graph", graph.launch, graph, stream)
  x:close()
end

function TestKernel.test_arguments()
  local kernel <close> = kernel_or_skip()
  local x <close> = assert(cuda.buffer("u64", 8)):fill(5)
  local number, bits = { "u64", 8 }, { "u64", 1 }
  local CASES = {
    { "option 'grid' is required", { block = 1 }, x, number, bits },
    { "one to three integers", { grid = 0, block = 1 }, x, number, bits },
    { "one to three integers", { grid = {}, block = 1 }, x, number, bits },
    { "one to three integers", { grid = { 1, 1, 1, 1 }, block = 1 }, x, number, bits },
    { "one to three integers", { grid = 1.5, block = 1 }, x, number, bits },
    { "unknown option 'blok'", { grid = 1, block = 1, blok = 1 }, x, number, bits },
    { "cuda.stream expected", { grid = 1, block = 1, stream = x }, x, number, bits },
    { "table expected", GRID, x, 8, bits },
    { "its type", GRID, x, { 8 }, bits },
    { "its type", GRID, x, { "u65", 8 }, bits },
    { "expected a number", GRID, x, { "u64" }, bits },
    { "does not fit in u8", GRID, x, { "u8", 300 }, bits },
    { "table expected, got nil", GRID, x, nil, bits },
  }
  for _, case in ipairs(CASES) do
    raises(case[1], kernel.launch, kernel, table.unpack(case, 2, 5))
  end
  eq(x:compare(5), 0)
  raises("CUDA_ERROR_INVALID_VALUE", kernel.launch, kernel, { grid = 1, block = 4096 },
    x, number, bits)
end

--- The driver tells since 12.4; before, a missing argument reads zeros.
function TestKernel.test_arguments_are_counted_and_sized()
  local kernel <close> = kernel_or_skip()
  local x <close> = assert(cuda.buffer("u64", 8)):fill(5)
  local version = assert(cuda.driver_version())
  local major, minor = version:match("^(%d+)%.(%d+)$")
  local is_old = tonumber(major) * 100 + tonumber(minor) < 1204
  luaunit.skipIf(is_old, "the driver is " .. version)
  raises("takes 3 arguments, got 2", kernel.launch, kernel, GRID, x, { "u64", 8 })
  raises("takes 3 arguments, got 0", kernel.launch, kernel, GRID)
  raises("wants 8 bytes here, got 4", kernel.launch, kernel, GRID, x, { "i32", 8 },
    { "u64", 1 })
end

function TestKernel.test_the_compilers_text()
  kernel_or_skip():close()
  local kernel, message, code = cuda.kernel("__global__ void k(int *x) { *x = y; }", "k")
  eq(kernel, nil)
  eq(code, "nvrtc")
  contains(message, 'identifier "y" is undefined')
  kernel, message = cuda.kernel(SOURCE, "another_name")
  eq(kernel, nil)
  contains(message, "another_name")
end

function TestKernel.test_fields()
  local kernel = kernel_or_skip()
  eq({ kernel.name, kernel.device, kernel.log }, { "nclua_fill", cuda.device(), "" })
  contains(tostring(kernel), "cuda.kernel (nclua_fill")
  raises("has no field 'nmae'", function() return kernel.nmae end)
  kernel:close()
  eq(tostring(kernel), "cuda.kernel (closed)")
  kernel:close()
  raises("closed kernel", kernel.launch, kernel, GRID)
  raises("cuda.kernel expected", kernel.launch, 7, GRID)
end

function TestKernel.test_collected_while_it_runs()
  local stream <close> = assert(cuda.stream())
  local x <close> = assert(cuda.buffer("u64", 1 << 16)):fill(0)
  local options = { grid = 1, block = 32, stream = stream }
  for i = 1, 20 do
    kernel_or_skip():launch(options, x, { "u64", 1 << 16 }, { "u64", i })
    collectgarbage()
  end
  stream:sync()
  eq(x:compare(20), 0)
end
