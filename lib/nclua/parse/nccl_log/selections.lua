--- Selections by the names that the rest of nclua uses, whatever form the log has them in.
local names = require("nclua.cost_model.names")

local selections = {}

---@class nclua.nccl_log.selection : logscan.record
---@field collective string? "all_reduce"; nil up to 2.22, which do not say it
---@field algorithm string "Ring"; of a symmetric kernel or the copy engine, as printed
---@field protocol string? "LL"
---@field algorithm_text string as printed: "RING", or "1" up to 2.23
---@field protocol_text string?
---@field channels integer? that were used
---@field is_total boolean? bytes count all ranks' of a gather or scatter, as up to 2.23

-- Up to 2.13 there is one CollNet.
local function algorithm_of(text, minor)
  if text == "2" and minor and minor <= 13 then return "CollNet" end
  return names.algorithm(text) or text
end

local function by_size(a, b)
  if a.name ~= b.name then return (a.name or "") < (b.name or "") end
  if a.bytes ~= b.bytes then return a.bytes < b.bytes end
  return a.first_line < b.first_line
end

--- Names them; sorted by collective and size.
---@param records logscan.record[]
---@param version string? NCCL's
---@return nclua.nccl_log.selection[]
function selections.list(records, version)
  local minor = version and math.tointeger(tonumber(version:match("^2%.(%d+)")))
  for _, record in ipairs(records) do
    record.collective = record.name and names.collective(record.name)
    record.algorithm_text, record.protocol_text = record.algorithm, record.protocol
    record.is_total = record.time_us ~= nil
    if record.form == "plain" then
      record.algorithm = record.algorithm and algorithm_of(record.algorithm, minor)
      record.protocol = record.protocol and (names.protocol(record.protocol)
        or record.protocol)
    end
    if record.high then record.channels = record.high - record.low + 1 end
  end
  table.sort(records, by_size)
  return records
end

return selections
