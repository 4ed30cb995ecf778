--- Did a tuner's override take effect? Several witnesses are asked that know nothing of
--- each other, and every one of them may say no. Pure.
local override = {}

local combination = require("nclua.combination")

---@class override.seen what was observed; what nobody saw is nil
---@field environment? table<string, string> NCCL_ALGO, NCCL_PROTO where the ranks had them
---@field loaded? string the log's line about the plugin
---@field calls? { outcome: string }[] the plugin's own log of calls of this size
---@field selections? capture.choice[] the library's log
---@field backend? capture.choice what the communicator itself says
---@field grids? integer[] distinct gridX of the kernels that ran
---@field against? contest.result times of the library's own choice against the override's

---@class override.witness
---@field witness string
---@field says string
---@field agrees? boolean nil: it cannot tell

---@class override.verdict
---@field took_effect boolean
---@field text string "took effect", "ignored because ..."
---@field witnesses override.witness[]

local function describe(one)
  return ("%s/%s%s"):format(one.algorithm, one.protocol,
    one.channels and (", %d channels"):format(one.channels) or "")
end

local function is_same(one, asked)
  local is_way = one.algorithm == asked.algorithm and one.protocol == asked.protocol
  if not is_way then return false end
  return not one.channels or asked.channels == 0 or one.channels == asked.channels
end

local ASK = {}

function ASK.environment(seen)
  local words = {}
  for name, value in pairs(seen.environment or {}) do
    words[#words + 1] = name .. "=" .. value
  end
  if #words == 0 then return "nothing in it names an algorithm or protocol", true end
  table.sort(words)
  return table.concat(words, " "), false
end

function ASK.loaded(seen)
  if seen.loaded then return seen.loaded, true end
  if seen.calls and #seen.calls > 0 then
    return "no line in the log, but it was called", true
  end
  return "nothing says that the library loaded the plugin", false
end

function ASK.calls(seen)
  if not seen.calls or #seen.calls == 0 then return "it was never asked", false end
  local counts, words, agrees = {}, {}, true
  for _, call in ipairs(seen.calls) do
    if not counts[call.outcome] then words[#words + 1] = call.outcome end
    counts[call.outcome] = (counts[call.outcome] or 0) + 1
    agrees = agrees and call.outcome == "forced"
  end
  for i, word in ipairs(words) do words[i] = ("%d %s"):format(counts[word], word) end
  return table.concat(words, ", "), agrees
end

function ASK.selections(seen, asked)
  if not seen.selections or #seen.selections == 0 then return "says nothing", nil end
  local words, agrees = {}, true
  for i, one in ipairs(seen.selections) do
    words[i] = describe(one)
    agrees = agrees and is_same(one, asked)
  end
  return table.concat(words, "; "), agrees
end

function ASK.backend(seen, asked)
  if not seen.backend then return "cannot be asked", nil end
  return describe(seen.backend), is_same(seen.backend, asked)
end

function ASK.grids(seen, asked)
  if not seen.grids or #seen.grids == 0 then return "no profile", nil end
  local text = "gridX " .. table.concat(seen.grids, ", ")
  if asked.channels == 0 then return text, nil end
  return text, #seen.grids == 1 and seen.grids[1] == asked.channels
end

-- A time that has not changed proves nothing: the other way may be as fast.
function ASK.against(seen)
  local result = seen.against
  if not result then return "not measured", nil end
  local text = ("%.2f x the time of the library's own choice (%.2f to %.2f)"):format(
    1 / result.ratio, 1 / result.high, 1 / result.low)
  if result.verdict == "unclear" then return text, nil end
  return text, true
end

local WITNESSES = {
  { "environment", "the environment" },
  { "loaded", "the library's log: plugin" },
  { "calls", "the plugin's own call log" },
  { "selections", "the library's log: selection" },
  { "backend", "the communicator" },
  { "grids", "the kernels" },
  { "against", "the times" },
}

-- What explains a refusal, the root of it first.
local function reason(seen, asked, bytes)
  local name = combination.name(asked)
  local text, agrees = ASK.environment(seen)
  if not agrees then return "the environment decides before a tuner: " .. text end
  local _, is_loaded = ASK.loaded(seen)
  if not is_loaded or not seen.calls or #seen.calls == 0 then
    return "the plugin was not loaded"
  end
  for _, call in ipairs(seen.calls) do
    if call.outcome == "unavailable" then
      return name .. " is not available to this communicator"
    elseif call.outcome == "kept" then
      return ("%d bytes are outside the range of the override"):format(bytes)
    end
  end
  return "the library did something else in spite of it"
end

---@param asked combination
---@param bytes integer
---@param seen override.seen
---@return override.verdict
function override.judge(asked, bytes, seen)
  local witnesses, all_agree, has_result = {}, true, false
  for i, row in ipairs(WITNESSES) do
    local says, agrees = ASK[row[1]](seen, asked)
    witnesses[i] = { witness = row[2], says = says, agrees = agrees }
    if agrees == false then all_agree = false end
    local is_result = row[1] == "selections" or row[1] == "backend" or row[1] == "grids"
    has_result = has_result or (is_result and agrees == true)
  end
  if all_agree and has_result then
    return { took_effect = true, text = "took effect", witnesses = witnesses }
  end
  local why = all_agree and "nobody saw what ran" or reason(seen, asked, bytes)
  local how = all_agree and "unproven: " or "ignored because "
  return { took_effect = false, text = how .. why, witnesses = witnesses }
end

return override
