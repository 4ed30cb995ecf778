local clean_environment = require("nclua.clean_environment")
local luaunit = require("luaunit")

TestCleanEnvironment = {}

local TEXT = "PATH=/bin\0NCCL_ALGO=Ring\0NCCL_NVLS_ENABLE=0\0TORCH_NCCL_X=1\0"
  .. "NCLUA_TUNER_FORCE=a=b\0NCLUA_BACKEND=cpu\0MY_NCCL_=1\0"

function TestCleanEnvironment.test_what_steers_goes()
  local unset, stayed = clean_environment.of({ "NCCL_NVLS_ENABLE", "NCCL_UNSET" }, TEXT)
  luaunit.assertEquals(unset,
    { NCCL_ALGO = false, TORCH_NCCL_X = false, NCLUA_TUNER_FORCE = false })
  luaunit.assertEquals(stayed, { { "kept.NCCL_NVLS_ENABLE", "0" } })
end

function TestCleanEnvironment.test_of_this_process()
  local unset = clean_environment.of({})
  luaunit.assertNil(unset.NCLUA_BACKEND)
end
