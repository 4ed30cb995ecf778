--- Data types by nccl-tests' names, and how large integers may be in each so that whatever
--- is computed with them is exact.
local types = {}

---@class perf.type
---@field name string nccl-tests'
---@field dtype cuda.dtype
---@field bytes integer
---@field exact integer every integer up to this, in magnitude, is represented exactly
---@field is_signed boolean
---@field roundoff? number largest relative error of one rounding; nil for integers

local function row(name, dtype, bytes, exact, is_signed, roundoff)
  return { name = name, dtype = dtype, bytes = bytes, exact = exact, is_signed = is_signed,
    roundoff = roundoff }
end

-- Large enough to tell values apart; a product of two still fits into an integer of Lua's.
local PLENTY = 1 << 20

---In the order of `-d all`.
---@type perf.type[]
types.ALL = {
  row("int8", "i8", 1, 127, true), row("uint8", "u8", 1, 255, false),
  row("int32", "i32", 4, PLENTY, true), row("uint32", "u32", 4, PLENTY, false),
  row("int64", "i64", 8, PLENTY, true), row("uint64", "u64", 8, PLENTY, false),
  row("half", "f16", 2, 2048, true, 2.0 ^ -11),
  row("float", "f32", 4, PLENTY, true, 2.0 ^ -24),
  row("double", "f64", 8, PLENTY, true, 2.0 ^ -53),
  row("bfloat16", "bf16", 2, 256, true, 2.0 ^ -8),
  row("f8e4m3", "f8e4m3", 1, 16, true, 2.0 ^ -4),
  row("f8e5m2", "f8e5m2", 1, 8, true, 2.0 ^ -3),
}

---@param name string nccl-tests' or nclua's
---@return perf.type?
function types.find(name)
  for _, one in ipairs(types.ALL) do
    if one.name == name or one.dtype == name then return one end
  end
end

return types
