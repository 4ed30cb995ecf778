local luaunit = require("luaunit")
local oversubscribe = require("nclua.oversubscribe")

local eq = luaunit.assertEquals

local function unset() return nil end

-- Ranks, devices, hosts, and each rank's device and host.
local CASES = {
  { 2, 2, 1, { 0, 0 }, { 1, 0 } },
  { 3, 2, 2, { 0, 0 }, { 1, 0 }, { 0, 1 } },
  { 4, 2, 2, { 0, 0 }, { 1, 0 }, { 0, 1 }, { 1, 1 } },
  { 4, 1, 4, { 0, 0 }, { 0, 1 }, { 0, 2 }, { 0, 3 } },
  { 5, 4, 2, { 0, 0 }, { 1, 0 }, { 2, 0 }, { 3, 0 }, { 0, 1 } },
}

TestOversubscribe = {}

function TestOversubscribe.test_places()
  for _, case in ipairs(CASES) do
    local ranks, devices, hosts = table.unpack(case, 1, 3)
    eq(oversubscribe.hosts(ranks, devices), hosts)
    for index = 0, ranks - 1 do
      local device, host = table.unpack(case[4 + index])
      eq(oversubscribe.place("cuda", index, ranks, devices, unset), {
        device = device,
        env = { NCCL_HOSTID = "nclua-host-" .. host, NCCL_SOCKET_IFNAME = "lo" },
      })
    end
  end
end

--- No two ranks of one host share a device: that is what NCCL refuses.
function TestOversubscribe.test_no_host_has_a_device_twice()
  for ranks = 1, 17 do
    for devices = 1, 8 do
      local seen = {}
      for index = 0, ranks - 1 do
        local place = oversubscribe.place("cuda", index, ranks, devices, unset)
        local key = place.env.NCCL_HOSTID .. " " .. place.device
        luaunit.assertNil(seen[key])
        luaunit.assertTrue(place.device < devices)
        seen[key] = true
      end
    end
  end
end

function TestOversubscribe.test_the_users_interface_stays()
  local place = oversubscribe.place("cuda", 0, 4, 2, function(name)
    return name == "NCCL_SOCKET_IFNAME" and "eth0" or nil
  end)
  eq(place.env, { NCCL_HOSTID = "nclua-host-0" })
end

function TestOversubscribe.test_cpu_backend_grows()
  local place = oversubscribe.place("cpu", 9, 10, 8)
  eq(place, { device = 9, env = { NCLUA_CPU_DEVICES = "10" } })
end
