--- nclua.nccl on a library as old as 2.12: what it lacks is said, what can be composed is.
local cuda = require("nclua.cuda")
local luaunit = require("luaunit")
local nccl = require("nclua.nccl")

TestOld = {}

local comm, x

function TestOld.setUp()
  comm = assert(nccl.init_all(1))[1]
  x = assert(cuda.buffer("f32", 8)):fill(3)
end

function TestOld.tearDown()
  comm:close()
  x:close()
end

function TestOld.test_version()
  luaunit.assertStrMatches(nccl.version(), "2%.12%.%d+")
end

function TestOld.test_unsupported()
  for name, arguments in pairs({
    register = { x }, window = { x }, split = { 0, 0 }, last_choice = {},
  }) do
    local none, message, code = comm[name](comm, table.unpack(arguments))
    luaunit.assertNil(none)
    luaunit.assertStrMatches(message, name .. ": not supported by NCCL 2%.12%.%d+")
    luaunit.assertEquals(code, "ENOTSUP")
  end
end

function TestOld.test_composed()
  local y <close> = cuda.buffer("f32", 8):fill(0)
  comm:all_to_all(x, y)
  luaunit.assertEquals({ y:compare(3) }, { 0 })
  comm:gather(x, y:fill(0), 0)
  luaunit.assertEquals({ y:compare(3) }, { 0 })
  comm:scatter(x, y:fill(0), 0)
  luaunit.assertEquals({ y:compare(3) }, { 0 })
end

function TestOld.test_options_of_newer_ones()
  local options = { id = assert(nccl.unique_id()), rank = 0, count = 1 }
  local plain <close> = assert(nccl.comm(options))
  luaunit.assertTrue(plain:ready())
  options.id, options.blocking = assert(nccl.unique_id()), false
  local none, message, code = nccl.comm(options)
  luaunit.assertNil(none)
  luaunit.assertStrContains(message, "comm: ncclInvalidUsage: 'blocking' needs NCCL 2.14")
  luaunit.assertEquals(code, "ncclInvalidUsage")
end

function TestOld.test_endings()
  comm:all_reduce(x, x, "sum"):finalize()
  luaunit.assertErrorMsgContains("finalized", comm.all_reduce, comm, x, x, "sum")
end
