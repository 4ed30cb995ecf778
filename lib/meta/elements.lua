---@meta nclua.elements

---Arithmetic on strings of elements (as `buffer:to_string` gives them), rounded as NCCL's
---kernels round: f16 and bf16 are computed in float and rounded once; max and min pass over
---NaN; every NaN comes out as the same one.
local elements = {}

---@alias elements.dtype "f16"|"bf16"|"f32"|"f64"

---@param dtype elements.dtype
---@param op "sum"|"prod"|"max"|"min"
---@param a string
---@param b string as long as a
---@return string
function elements.reduce(dtype, op, a, b) end

---Each element times `factor`, which is rounded to the dtype first: NCCL's pre-multiplication.
---@param dtype elements.dtype
---@param a string
---@param factor number
---@return string
function elements.scale(dtype, a, factor) end

return elements
