local luaunit = require("luaunit")
local size = require("nclua.size")

-- Text, bytes or nil.
local PARSED = {
  { "0", 0 }, { "64", 64 }, { "64B", 64 }, { "64K", 65536 }, { "64k", 65536 },
  { "64KiB", 65536 }, { "64 kb", 65536 }, { "16MiB", 1 << 24 }, { "1G", 1 << 30 },
  { "2T", 2 << 40 },
  { "8388607T", 8388607 << 40 }, { "8388608T", nil }, { "", nil },
  { "K", nil }, { "1.5K", nil }, { "-1", nil }, { "64X", nil }, { "64KK", nil },
  { "1e3", nil }, { "0x10", nil }, { "99999999999999999999", nil },
}

TestSize = {}

function TestSize.test_parse()
  for _, case in ipairs(PARSED) do
    local bytes, message, code = size.parse(case[1])
    luaunit.assertEquals(bytes, case[2], case[1])
    if not case[2] then
      luaunit.assertStrContains(message, "not a size: '" .. case[1] .. "'")
      luaunit.assertEquals(code, "EINVAL")
    end
  end
end

function TestSize.test_format_can_be_read_again()
  local shown = { [0] = "0 B", [1] = "1 B", [1536] = "1536 B", [1 << 20] = "1 MiB",
    [3 << 19] = "1536 KiB", [80 << 20] = "80 MiB", [3 << 40] = "3 TiB" }
  for bytes, text in pairs(shown) do
    luaunit.assertEquals(size.format(bytes), text)
    luaunit.assertEquals(size.parse(text), bytes)
  end
end
