--- Sizes as people write them: "64K" is 65536. K, M, G and T are powers of 1024, as in
--- nccl-tests; "64KiB", "64KB" and "64 kib" mean the same.
local size = {}

local SCALE = { [""] = 1, K = 1 << 10, M = 1 << 20, G = 1 << 30, T = 1 << 40 }
local UNITS = { "T", "G", "M", "K" }

---@param text string
---@return integer? bytes
---@return string? message
---@return string? code "EINVAL"
function size.parse(text)
  local digits, unit = text:upper():match("^(%d+)%s*([KMGT]?)I?B?$")
  local count, scale = math.tointeger(digits), SCALE[unit]
  if not count or count > math.maxinteger // scale then
    local message = "not a size: '%s' (expected digits and K, M, G or T)"
    return nil, message:format(text), "EINVAL"
  end
  return count * scale
end

---Exact, so that what it writes can be read again: 1572864 is "1536 KiB".
---@param bytes integer not negative
---@return string
function size.format(bytes)
  for _, unit in ipairs(UNITS) do
    local scale = SCALE[unit]
    if bytes > 0 and bytes % scale == 0 then
      return ("%d %siB"):format(bytes // scale, unit)
    end
  end
  return ("%d B"):format(bytes)
end

return size
