--- Which rows a table has, in nccl-tests' order: type, operator, root, cycle, size.
local collectives = require("perf.collectives")

local cases = {}

---@param opt table
---@return integer[]
local function sizes(opt)
  local list, bytes = {}, opt.minbytes
  while bytes <= opt.maxbytes do
    list[#list + 1] = bytes
    if opt.stepfactor > 1 then
      bytes = bytes * opt.stepfactor
    else
      bytes = bytes + math.max(1, opt.stepbytes)
    end
  end
  return list
end

local NO_ROOT = { -1 }

-- A hypercube needs a power of two.
local function is_possible(name, ranks)
  return name ~= "hypercube" or ranks & (ranks - 1) == 0
end

---@class perf.case
---@field collective string
---@field type string
---@field redop string
---@field root integer -1: none
---@field run_cycle integer from 0
---@field requested_bytes integer
---@field name string

local function add(list, opt, fields)
  for cycle = 0, opt.cycles - 1 do
    for _, bytes in ipairs(sizes(opt)) do
      local case = { run_cycle = cycle, requested_bytes = bytes }
      for key, value in pairs(fields) do case[key] = value end
      case.name = ("%s %s %s %d %d %d"):format(case.collective, case.type, case.redop,
        case.root, cycle, bytes)
      list[#list + 1] = case
    end
  end
end

local function of(opt, collective)
  local list, seen = {}, {}
  for _, type in ipairs(opt.types) do
    for _, op in ipairs(opt.ops) do
      local redop = collectives.redop(collective, op)
      for _, root in ipairs(collective.is_rooted and opt.roots or NO_ROOT) do
        local key = type.name .. redop .. root
        if not seen[key] then
          seen[key] = true
          add(list, opt, { collective = collective.name, type = type.name, redop = redop,
            root = root })
        end
      end
    end
  end
  return list
end

---@param opt table resolved
---@return perf.case[]
---@return string[] impossible names of collectives that so many ranks cannot make
function cases.all(opt)
  local list, impossible = {}, {}
  for _, name in ipairs(opt.collectives) do
    if is_possible(name, opt.ranks) then
      local some = of(opt, collectives[name])
      table.move(some, 1, #some, #list + 1, list)
    else
      impossible[#impossible + 1] = name
    end
  end
  return list, impossible
end

return cases
