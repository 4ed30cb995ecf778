--- The rank logs of one run beside each other: what differs, and which rank is the odd one.
local compare = {}

-- A number is odd if it is this many times the median, or less than its inverse.
local ODD_RATIO = 2

local function label(path, member)
  if not member or not member.rank then return path end
  return ("rank %d (%s)"):format(member.rank, path)
end

local function add_env(facts, log, process)
  for _, entry in ipairs(log.env) do
    for _, one in ipairs(entry.processes) do
      if one == process then facts["env " .. entry.name] = entry.value end
    end
  end
end

-- What a rank called, whatever its pointers: name, elements and how often, in order.
local function add_operations(facts, log, member)
  local words, calls, last = {}, 0, nil
  for _, one in ipairs(log.operations) do
    if one.process == member.process and (not member.comm or one.comm == member.comm) then
      words[#words + 1] = ("%s %d x%d"):format(one.name, one.elements, one.times)
      calls = calls + one.times
      last = math.max(last or 0, one.last_op_count)
    end
  end
  if calls == 0 then return end
  facts["operations called"] = calls
  facts["last opCount"] = last
  if #words <= 200 then facts["operations"] = table.concat(words, ", ") end
end

local function add_graphs(facts, member)
  for _, graph in ipairs(member.graphs) do
    facts["graph " .. (graph.name or graph.pattern)] = ("%d x %s/%s %s/%s"):format(
      graph.channels, graph.bw_intra, graph.bw_inter, graph.type_intra, graph.type_inter)
  end
end

local function add_member(facts, log, member)
  local system = member.system or {}
  facts["system bandwidth"] = system.max_bw
  facts["CPU vendor"] = system.cpu_vendor
  facts["state"] = member.state
  facts["init seconds"] = member.timings_s and member.timings_s.total
  for name, count in pairs(member.channels or {}) do facts[name .. " channels"] = count end
  add_graphs(facts, member)
  add_env(facts, log, member.process)
  add_operations(facts, log, member)
  facts["warnings"] = 0
  for _, warning in ipairs(log.warnings) do
    if warning.process == member.process then
      facts["warnings"] = facts["warnings"] + warning.times
    end
  end
end

-- One entry a rank; a log that names no rank is one entry itself.
local function entries_of(docs)
  local entries = {}
  for _, doc in ipairs(docs) do
    local log = doc.log
    local group = log and log.communicators[1]
    for _, member in ipairs(group and group.members or {}) do
      if member.rank or #group.members == 1 then
        local facts = { ["NCCL version"] = log.version, ["driver"] = log.driver,
          ["ranks"] = group.ranks, ["nodes"] = group.nodes }
        add_member(facts, log, member)
        entries[#entries + 1] = { label = label(doc.path, member), facts = facts }
      end
    end
  end
  return entries
end

local function names_of(entries)
  local names, seen = {}, {}
  for _, entry in ipairs(entries) do
    for name in pairs(entry.facts) do
      if not seen[name] then names[#names + 1] = name end
      seen[name] = true
    end
  end
  table.sort(names)
  return names
end

-- Measured times vary: only what is far from the median counts.
local MEASURED = { ["init seconds"] = true }

local function odd_numbers(entries, name)
  local values = {}
  for _, entry in ipairs(entries) do values[#values + 1] = entry.facts[name] end
  table.sort(values)
  local median = values[(#values + 1) // 2]
  local odd = {}
  for _, entry in ipairs(entries) do
    local value = entry.facts[name]
    if value and (value > ODD_RATIO * median or value * ODD_RATIO < median) then
      odd[#odd + 1] = entry
    end
  end
  return odd, median
end

-- Entries whose value is not the most frequent one; none if no value has a majority.
local function odd_values(entries, name)
  local counts, usual = {}, nil
  for _, entry in ipairs(entries) do
    local value = tostring(entry.facts[name])
    counts[value] = (counts[value] or 0) + 1
    if not usual or counts[value] > counts[usual] then usual = value end
  end
  local odd = {}
  for _, entry in ipairs(entries) do
    if tostring(entry.facts[name]) ~= usual then odd[#odd + 1] = entry end
  end
  return odd, usual, counts[usual] * 2 > #entries
end

local function shorten(value)
  local text = value == nil and "(not said)" or tostring(value)
  return #text > 200 and text:sub(1, 197) .. "..." or text
end

---@class nclua.read.difference
---@field property string
---@field rank string "rank 3 (run/rank3.log)"
---@field value string
---@field usual string what most say; "(no majority)" if there is none

---@class nclua.read.comparison
---@field ranks integer
---@field differences nclua.read.difference[]
---@field odd_one string? who differs from the others most; nil if nobody stands out

--- Compares the logs of one run.
---@param docs nclua.read.document[]
---@return nclua.read.comparison
function compare.ranks(docs)
  local entries, differences, blame = entries_of(docs), {}, {}
  for _, name in ipairs(#entries > 1 and names_of(entries) or {}) do
    local find = MEASURED[name] and odd_numbers or odd_values
    local odd, usual, is_majority = find(entries, name)
    for _, entry in ipairs(odd) do
      differences[#differences + 1] = {
        property = name, rank = entry.label, value = shorten(entry.facts[name]),
        usual = is_majority == false and "(no majority)" or shorten(usual),
      }
      if is_majority ~= false then blame[entry.label] = (blame[entry.label] or 0) + 1 end
    end
  end
  local odd_one, most, is_tied
  for _, entry in ipairs(entries) do
    local count = blame[entry.label] or 0
    if count > (most or 0) then
      odd_one, most, is_tied = entry.label, count, false
    elseif most and count == most and entry.label ~= odd_one then
      is_tied = true
    end
  end
  return { ranks = #entries, differences = differences,
    odd_one = not is_tied and odd_one or nil }
end

return compare
