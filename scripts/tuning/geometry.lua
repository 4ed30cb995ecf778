--- The kernels that ran while the override was in force: how many blocks, which is how many
--- channels.
local geometry = {}

---@class tuning.geometry
---@field source string who took the profile
---@field grids integer[] distinct gridX

---Writes plugin_kernel_geometry.csv.
---@param _run run
---@return tuning.geometry? profile
---@return string? why there is none
function geometry.write(_run)
  return nil, "no tracer"
end

return geometry
