--- Which contexts are the ranks of one communicator. Newer logs name it (commId); a split
--- is known by its parent and colour; of older ones, ranks are put together as they came.
local communicators = {}

---@class nclua.nccl_log.rank what one rank said
---@field rank integer?
---@field host string?
---@field process string? "HOST:PID"
---@field device integer? current when it spoke
---@field cuda_device integer?
---@field bus_id string?
---@field comm string? its pointer: operations name it
---@field graphs table[] also by name: ring, tree, collnet_chain, collnet_direct, nvls
---@field system table? max_bw, total_bw, cpu_arch, cpu_vendor, has_nvswitch, nodes, paths
---@field trees string?
---@field order string[] rank orders of the rings, rank 0
---@field channels table<string, integer>? coll, collnet, nvls, p2p, p2p_per_peer
---@field thresholds integer[][]?
---@field timings_s table<string, number>?
---@field state string? "init start", "init complete", "destroy complete", "abort complete"

---@class nclua.nccl_log.communicator
---@field id string? commId
---@field ranks integer?
---@field nodes integer?
---@field local_ranks integer?
---@field is_mnnvl boolean?
---@field members nclua.nccl_log.rank[] by rank
---@field channels table<string, integer>?
---@field tuning table? [collective][algorithm][protocol]: latency_us, bandwidth_gbps
---@field max_threads table? [algorithm][protocol]
---@field thresholds integer[][]?

local function parent_key(self, one)
  local parent = self.of_comm[(one.process or "?") .. " " .. one.parent]
  return ("split %s %s %s %s"):format(parent and self.key_of[parent] or one.parent,
    one.color or "?", one.child or "?", one.ranks or "?")
end

-- A rank that came without a name: the first group of its size that lacks it.
local function unnamed_key(self, one)
  for _, group in ipairs(self.list) do
    if group.size == one.ranks and not group.has[one.rank or one] then return group.key end
  end
  return ("unnamed %d"):format(#self.list)
end

local function key_of(self, one)
  if one.comm_id then return "id " .. one.comm_id .. " " .. (one.ranks or "?") end
  local is_split = one.parent and one.parent ~= "(nil)" and one.color
  if is_split then return parent_key(self, one) end
  return unnamed_key(self, one)
end

local function add(self, key, one)
  local group = self.groups[key]
  if not group then
    group = { key = key, size = one.ranks, members = {}, has = {} }
    self.groups[key] = group
    self.list[#self.list + 1] = group
  end
  table.insert(group.members, one)
  group.has[one.rank or one] = true
  self.key_of[one] = key
end

local SHARED = {
  "ranks", "nodes", "local_ranks", "is_mnnvl", "channels", "tuning", "max_threads",
  "thresholds", "declared_channels",
}

-- What any rank says of the whole.
local function summarise(group)
  group.has, group.key, group.size = nil, nil, nil
  table.sort(group.members, function(a, b)
    if a.rank ~= b.rank then return (a.rank or -1) < (b.rank or -1) end
    return a.first_line < b.first_line
  end)
  for _, one in ipairs(group.members) do
    group.first_line = math.min(group.first_line or one.first_line, one.first_line)
    one.is_in_system, one.is_complete = nil, nil
    group.id = group.id or one.comm_id
    for _, field in ipairs(SHARED) do
      if group[field] == nil then group[field] = one[field] end
    end
  end
end

local function is_anonymous(one) return not one.ranks and not one.comm end

-- Where a log tells of one communicator only, lines without a name are its own.
local function adopt(self, anonymous)
  if #self.list == 1 then
    for _, one in ipairs(anonymous) do table.insert(self.list[1].members, one) end
    return
  end
  for i, one in ipairs(anonymous) do add(self, "anonymous " .. i, one) end
end

-- Those that a line names come first, so that the others find their group.
local function distribute(self, contexts)
  local anonymous = {}
  for _, is_first in ipairs({ true, false }) do
    for _, one in ipairs(contexts) do
      if is_anonymous(one) then
        if is_first then anonymous[#anonymous + 1] = one end
      elseif is_first == (one.comm_id ~= nil) then
        add(self, key_of(self, one), one)
      end
    end
  end
  adopt(self, anonymous)
end

--- Puts contexts together, largest communicator first.
---@return nclua.nccl_log.communicator[]
function communicators.group(contexts)
  local self = { groups = {}, list = {}, key_of = {}, of_comm = {} }
  for _, one in ipairs(contexts) do
    if one.comm then self.of_comm[(one.process or "?") .. " " .. one.comm] = one end
  end
  distribute(self, contexts)
  for _, group in ipairs(self.list) do summarise(group) end
  table.sort(self.list, function(a, b)
    if a.ranks ~= b.ranks then return (a.ranks or 0) > (b.ranks or 0) end
    return a.first_line < b.first_line
  end)
  return self.list
end

return communicators
