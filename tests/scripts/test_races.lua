--- nclua races: before the adversary wrong programs always fail, right ones never.
local luaunit = require("luaunit")
local process = require("nclua.process")

local NCLUA = assert(os.getenv("NCLUA"), "NCLUA must name the program under test")

TestRaces = {}

function TestRaces.test_programs()
  local result = assert(process.run({ NCLUA, "races", "--runs", "4" },
    { env = { NCLUA_BACKEND = "cpu" }, unset = { "NCCL_*" }, timeout_s = 120 }))
  luaunit.assertEquals(result.exit_code, 0, result.stdout .. result.stderr)
  local lines = {}
  for line in result.stdout:gmatch("[^\n]+") do lines[#lines + 1] = line end
  luaunit.assertEquals(#lines, 8)
  for i = 3, 8 do
    luaunit.assertStrMatches(lines[i], i % 2 == 1 and ".* wrong .* 0" or ".* right +4 +4")
  end
  -- What makes it a trap: as it comes, a short message waits in a slot.
  luaunit.assertStrMatches(lines[7], "missing group +wrong +4 +0")
end
