--- The environment of a measurement: nothing that was left over in the shell steers NCCL,
--- but for the switches without which a machine would not work.
local clean_environment = {}

local files = require("nclua.files")

local PATTERNS = { "^NCCL_", "^TORCH_NCCL_", "^NCLUA_TUNER_" }

--- What is kept unless a chapter says otherwise: NVLS does not work on every machine.
clean_environment.SWITCHES = "NCCL_NVLS_ENABLE"

local function is_steering(name)
  for _, pattern in ipairs(PATTERNS) do
    if name:find(pattern) then return true end
  end
  return false
end

---@param kept string[] names of variables that stay
---@param text? string as of /proc/self/environ, which is the default
---@return ranks.env unset the others: false for each
---@return environment.fact[] stayed name and value of those that stay
function clean_environment.of(kept, text)
  local is_kept, unset, stayed = {}, {}, {}
  for _, name in ipairs(kept) do is_kept[name] = true end
  text = text or files.read("/proc/self/environ") or ""
  for name, value in text:gmatch("([^=%z]+)=([^%z]*)") do
    if is_kept[name] then
      stayed[#stayed + 1] = { "kept." .. name, value }
    elseif is_steering(name) then
      unset[name] = false
    end
  end
  table.sort(stayed, function(a, b) return a[1] < b[1] end)
  return unset, stayed
end

return clean_environment
