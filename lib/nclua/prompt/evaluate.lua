--- What was typed, as a function: an expression if it is one, else statements.
local evaluate = {}

local NAME = "=stdin"

---@param text string
---@return function? fn
---@return string? message
---@return boolean? is_incomplete more lines could make it right
function evaluate.load(text)
  local expression = text:gsub("^%s*=", "", 1)
  local fn = load("return " .. expression, NAME, "t")
  if fn then return fn end
  local message
  fn, message = load(text, NAME, "t")
  if fn then return fn end
  return nil, message, message:find("<eof>$") ~= nil
end

-- Functions of the prompt itself, and of the host below it, are not the user's concern.
local function is_own(info)
  return info.source:find("^@lib/nclua/prompt") or info.what == "C" and not info.name
end

local function frame(info)
  local where = info.currentline > 0 and ("%s:%d"):format(info.short_src, info.currentline)
    or info.short_src
  if info.what == "main" then return where end
  return ("%s in %s"):format(where, info.name and "'" .. info.name .. "'" or "a function")
end

local LONGEST = 6

---For xpcall: the message, and who called whom if that is more than the line itself.
---@param message any
---@return string
function evaluate.explain(message)
  local text = type(message) == "string" and message or tostring(message)
  local frames, level = {}, 2
  local info = debug.getinfo(level, "Sln")
  while info and not info.source:find("^@lib/nclua/prompt") and #frames < LONGEST do
    if not is_own(info) then frames[#frames + 1] = frame(info) end
    level = level + 1
    info = debug.getinfo(level, "Sln")
  end
  while frames[1] and frames[1]:find("^%[C%]") do table.remove(frames, 1) end
  if #frames < 2 then return text end
  return text .. "\n  " .. table.concat(frames, "\n  ")
end

return evaluate
