--- The steps of one collective, put in order: channels, ranks, chunks, and which send each
--- receive belongs to. What draws and what counts them works on this.
local anatomy = {}

---@class anatomy.step: cpu.step
---@field chunk integer from 0, in order of place within the channel; its first one
---@field pieces integer[] all of its chunks
---@field fed_by anatomy.step[] the steps whose data this one received
---@field level integer from 1: one after the steps that it needs, the rank's own one before

---@class anatomy.channel
---@field number integer
---@field ranks table<integer, anatomy.step[]> by rank, in order
---@field chunks { offset: integer, bytes: integer }[] chunk i is at i + 1
---@field length integer levels: what the collective takes if every step takes as long

---@class anatomy.model
---@field ranks integer
---@field bytes integer the message
---@field collective string
---@field algorithm string
---@field protocol string
---@field channels anatomy.channel[]
---@field begin_ns integer
---@field end_ns integer

local function by_channel(steps)
  local channels, numbers = {}, {}
  for _, step in ipairs(steps) do
    local channel = channels[step.channel]
    if not channel then
      channel = { number = step.channel, ranks = {}, chunks = {}, length = 0 }
      channels[step.channel] = channel
      numbers[#numbers + 1] = step.channel
    end
    local own = channel.ranks[step.rank] or {}
    channel.ranks[step.rank] = own
    own[#own + 1] = step
  end
  table.sort(numbers)
  local list = {}
  for i, number in ipairs(numbers) do list[i] = channels[number] end
  return list
end

local function offsets_of(step)
  return step.offsets or { step.offset }
end

-- A step that is in no buffer of the caller's has the chunk of none.
local function name_chunks(channel)
  local bytes, chunk_at = {}, {}
  for _, own in pairs(channel.ranks) do
    for _, step in ipairs(own) do
      for _, offset in ipairs(offsets_of(step)) do
        bytes[offset] = step.bytes // #offsets_of(step)
      end
    end
  end
  for offset in pairs(bytes) do
    channel.chunks[#channel.chunks + 1] = { offset = offset, bytes = bytes[offset] }
  end
  table.sort(channel.chunks, function(a, b) return a.offset < b.offset end)
  for i, chunk in ipairs(channel.chunks) do chunk_at[chunk.offset] = i - 1 end
  for _, own in pairs(channel.ranks) do
    for _, step in ipairs(own) do
      step.pieces = {}
      for i, offset in ipairs(offsets_of(step)) do step.pieces[i] = chunk_at[offset] end
      step.chunk = step.pieces[1]
    end
  end
end

local function each_link(channel, key, visit)
  local counts = {}
  for rank, own in pairs(channel.ranks) do
    for _, step in ipairs(own) do
      for _, peer in ipairs(step[key]) do
        local from, to = rank, peer
        if key == "from" then from, to = peer, rank end
        local link = from .. ">" .. to
        counts[link] = (counts[link] or 0) + 1
        visit(step, link .. "#" .. counts[link])
      end
    end
  end
end

-- The i-th send from a to b is what b receives as the i-th from a.
local function pair(channel)
  local sends = {}
  each_link(channel, "to", function(step, name) sends[name] = step end)
  each_link(channel, "from", function(step, name)
    step.fed_by = step.fed_by or {}
    step.fed_by[#step.fed_by + 1] = sends[name]
  end)
end

local function level_of(step, before)
  local level = before and before.level or 0
  for _, source in ipairs(step.fed_by) do level = math.max(level, source.level) end
  step.level = level + 1
  return step.level
end

local function is_ready(step)
  for _, source in ipairs(step.fed_by) do
    if not source.level then return false end
  end
  return true
end

-- Goes round the ranks, as far as each can get with what the others have sent.
local function give_levels(channel)
  local places, any = {}, true
  while any do
    any = false
    for rank, own in pairs(channel.ranks) do
      local place = places[rank] or 1
      while own[place] and is_ready(own[place]) do
        channel.length = math.max(channel.length, level_of(own[place], own[place - 1]))
        place, any = place + 1, true
      end
      places[rank] = place
    end
  end
end

local function arrange(channel)
  for _, own in pairs(channel.ranks) do
    table.sort(own, function(a, b) return a.step < b.step end)
    for _, step in ipairs(own) do step.fed_by = {} end
  end
  name_chunks(channel)
  pair(channel)
  give_levels(channel)
end

---@param steps cpu.step[] of all ranks, of one call
---@param what { ranks: integer, bytes: integer }
---@return anatomy.model? model
---@return string? message
---@return string? code "EINVAL"
function anatomy.of(steps, what)
  local first = steps[1]
  if not first then return nil, "no step was recorded", "EINVAL" end
  local model = {
    ranks = what.ranks, bytes = what.bytes, collective = first.collective,
    algorithm = first.algorithm, protocol = first.protocol,
    channels = by_channel(steps), begin_ns = first.begin_ns, end_ns = first.end_ns,
  }
  for _, step in ipairs(steps) do
    model.begin_ns = math.min(model.begin_ns, step.begin_ns)
    model.end_ns = math.max(model.end_ns, step.end_ns)
  end
  for _, channel in ipairs(model.channels) do arrange(channel) end
  return model
end

---All steps: `for channel, rank, step in anatomy.each(model) do`, ranks in order.
---@param model anatomy.model
---@return fun(): anatomy.channel, integer, anatomy.step
function anatomy.each(model)
  return coroutine.wrap(function()
    for _, channel in ipairs(model.channels) do
      for rank = 0, model.ranks - 1 do
        for _, step in ipairs(channel.ranks[rank] or {}) do
          coroutine.yield(channel, rank, step)
        end
      end
    end
  end)
end

---"3→ +c0= →1": from whom, added to the own input (+), which chunk, kept (=), to whom.
---@param step anatomy.step
---@return string
function anatomy.label(step)
  local parts = {}
  if #step.from > 0 then parts[1] = table.concat(step.from, ",") .. "→" end
  local chunk = "c" .. table.concat(step.pieces, ",")
  if step.kind:find("reduce") then chunk = "+" .. chunk end
  local is_kept = step.kind:find("copy") or #step.to == 0
  parts[#parts + 1] = chunk .. (is_kept and "=" or "")
  if #step.to > 0 then parts[#parts + 1] = "→" .. table.concat(step.to, ",") end
  return table.concat(parts, " ")
end

return anatomy
