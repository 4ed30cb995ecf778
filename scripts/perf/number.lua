--- Numbers as nccl-tests 2.19.6 prints them: as many decimals as its column has room for.
local number = {}

-- The rounded text decides: 9999.996 has no room for two decimals.
local function fit(value, width, formats)
  for _, format in ipairs(formats) do
    local text = format:format(value)
    if #text <= width then return text end
  end
  return formats[#formats]:format(value)
end

---@param us number
---@return string
function number.time(us)
  return fit(us, 7, { "%.2f", "%.1f", "%.0f", "%.1e" })
end

---@param gbps number
---@return string
function number.bandwidth(gbps)
  return fit(gbps, 6, { "%.2f", "%.1f", "%.0f", "%.0e" })
end

---@param count integer? nil: not checked
---@return string
function number.wrong(count)
  return count and ("%g"):format(count) or "N/A"
end

return number
