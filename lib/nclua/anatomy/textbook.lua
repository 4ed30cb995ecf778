--- What a collective moves, counted, against what the textbook says it must.
---
--- For a message of S bytes on n ranks each chunk makes a fixed number of hops, and the
--- bytes sent by all ranks are S times that, whatever the algorithm. Ring and PAT also load
--- every rank alike, but for what chunks of unequal size make; in a tree each rank sends S
--- to each of its neighbours.
local anatomy = require("nclua.anatomy")

local textbook = {}

-- Of n ranks: hops and reductions of a chunk; what each rank sends, as a share of S.
local LAWS = {
  all_reduce = function(n) return 2 * (n - 1), n - 1, 2 * (n - 1) / n end,
  all_gather = function(n) return n - 1, 0, (n - 1) / n end,
  reduce_scatter = function(n) return n - 1, n - 1, (n - 1) / n end,
  broadcast = function(n) return n - 1, 0 end,
  reduce = function(n) return n - 1, n - 1 end,
}
local FORMULAS = {
  all_reduce = "2(n-1)/n x S", all_gather = "(n-1)/n x S", reduce_scatter = "(n-1)/n x S",
}

---@class anatomy.counts of one rank
---@field rank integer
---@field steps integer
---@field sends integer
---@field bytes_sent integer
---@field bytes_received integer
---@field bytes_reduced integer
---@field wait_us number
---@field delay_us number
---@field counters? cpu.counters what the backend itself counted

---@param model anatomy.model
---@param counters? table<integer, cpu.counters> by rank
---@return anatomy.counts[] in order of rank
function textbook.count(model, counters)
  local counts = {}
  for rank = 0, model.ranks - 1 do
    counts[rank + 1] = { rank = rank, steps = 0, sends = 0, bytes_sent = 0,
      bytes_received = 0, bytes_reduced = 0, wait_us = 0, delay_us = 0,
      counters = counters and counters[rank] }
  end
  for _, rank, step in anatomy.each(model) do
    local c = counts[rank + 1]
    c.steps = c.steps + 1
    c.sends = c.sends + #step.to
    c.bytes_sent = c.bytes_sent + #step.to * step.bytes
    c.bytes_received = c.bytes_received + #step.from * step.bytes
    if step.kind:find("reduce") then
      c.bytes_reduced = c.bytes_reduced + #step.from * step.bytes
    end
    c.wait_us = c.wait_us + step.wait_ns / 1000
    c.delay_us = c.delay_us + step.delay_ns / 1000
  end
  return counts
end

local function total(counts, key)
  local sum = 0
  for _, c in ipairs(counts) do sum = sum + c[key] end
  return sum
end

-- Hops of each chunk: the offset names a chunk, also across channels.
local function count_hops(model)
  local hops = {}
  for _, _, step in anatomy.each(model) do
    for _, offset in ipairs(step.offsets or { step.offset }) do
      hops[offset] = (hops[offset] or 0) + #step.to
    end
  end
  return hops
end

-- By how much ranks may differ: each leaves out two of a turn's chunks, or one block.
local function tolerance(model)
  local slack = 0
  for _, channel in ipairs(model.channels) do
    local smallest, largest = math.maxinteger, 0
    for _, chunk in ipairs(channel.chunks) do
      smallest, largest = math.min(smallest, chunk.bytes), math.max(largest, chunk.bytes)
    end
    if #channel.chunks % model.ranks ~= 0 then smallest = 0 end
    slack = slack + 2 * (largest - smallest) * -(-#channel.chunks // model.ranks)
  end
  return slack
end

---@class anatomy.finding
---@field what string
---@field expected number
---@field found number
---@field ok boolean

local function compare(findings, what, expected, found, slack)
  findings[#findings + 1] = { what = what, expected = expected, found = found,
    ok = math.abs(found - expected) <= (slack or 0) }
end

local function compare_hops(findings, model, hops)
  local least, most = math.maxinteger, 0
  for _, count in pairs(count_hops(model)) do
    least, most = math.min(least, count), math.max(most, count)
  end
  compare(findings, "hops of every chunk, least", hops, least)
  compare(findings, "hops of every chunk, most", hops, most)
end

local function compare_ranks(findings, model, counts, share)
  local slack = tolerance(model)
  local what = "rank %d sends " .. FORMULAS[model.collective]
  for _, c in ipairs(counts) do
    compare(findings, what:format(c.rank), share * model.bytes, c.bytes_sent, slack)
  end
end

-- Channels have trees of their own: a leaf of one is within another.
local function compare_neighbours(findings, model, counts)
  local expected = {}
  for _, channel in ipairs(model.channels) do
    local bytes = 0
    for _, chunk in ipairs(channel.chunks) do bytes = bytes + chunk.bytes end
    for rank, own in pairs(channel.ranks) do
      local peers = {}
      for _, step in ipairs(own) do
        for _, peer in ipairs(step.to) do peers[peer] = bytes end
      end
      for _, share in pairs(peers) do expected[rank] = (expected[rank] or 0) + share end
    end
  end
  for _, c in ipairs(counts) do
    compare(findings, ("rank %d sends S to each neighbour"):format(c.rank),
      expected[c.rank] or 0, c.bytes_sent)
  end
end

-- The steps are recorded above the protocols, the counters count slots below them.
local function compare_counters(findings, counts)
  for _, key in ipairs({ "bytes_sent", "bytes_received", "bytes_reduced" }) do
    local recorded, counted = 0, 0
    for _, c in ipairs(counts) do
      if not c.counters then return end
      recorded, counted = recorded + c[key], counted + c.counters[key]
    end
    compare(findings, ("%s by all ranks, counted in slots"):format(key:gsub("_", " ")),
      recorded, counted)
  end
end

---@param model anatomy.model
---@param counts anatomy.counts[]
---@return anatomy.finding[]
function textbook.check(model, counts)
  local findings = {}
  local hops, reductions, share = LAWS[model.collective](model.ranks)
  compare(findings, "bytes sent by all ranks", hops * model.bytes,
    total(counts, "bytes_sent"))
  compare(findings, "bytes received by all ranks", hops * model.bytes,
    total(counts, "bytes_received"))
  compare(findings, "bytes reduced by all ranks", reductions * model.bytes,
    total(counts, "bytes_reduced"))
  compare_counters(findings, counts)
  compare_hops(findings, model, hops)
  if model.algorithm == "Tree" then
    compare_neighbours(findings, model, counts)
  elseif share then
    compare_ranks(findings, model, counts, share)
  end
  return findings
end

return textbook
