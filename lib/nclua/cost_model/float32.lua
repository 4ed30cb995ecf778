--- NCCL computes its model in float32: agreement to the last digit needs the same rounding.
local float32 = {}

local pack, unpack = string.pack, string.unpack

--- The nearest float32, as a double.
---@param x number
---@return number
function float32.round(x) return (unpack("<f", pack("<f", x))) end

return float32
