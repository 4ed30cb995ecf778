--- Values as the prompt shows them: bounded in every direction, and never waiting long
--- for a device.
local display = {}

local cuda = require("nclua.cuda")
local size = require("nclua.size")

local DEEPEST, MOST_ITEMS, MOST_LINES, WIDEST, LONGEST_TEXT = 4, 40, 60, 78, 400
local FIRST_VALUES, PATIENCE_NS = 6, 200 * 1000 * 1000

local function quote(text)
  local shown = #text > LONGEST_TEXT and text:sub(1, LONGEST_TEXT) or text
  local quoted = ("%q"):format(shown):gsub("\\\n", "\\n"):gsub("\r", "\\r")
    :gsub("[\1-\31\127]", function(c) return ("\\x%02x"):format(c:byte()) end)
  if #text == #shown then return quoted end
  return ("%s... (%d bytes)"):format(quoted, #text)
end

-- A hanging collective must not hang the prompt as well.
local function waits(device)
  local deadline = cuda.now_ns() + PATIENCE_NS
  repeat
    if cuda.is_idle(device) then return false end
  until cuda.now_ns() > deadline
  return true
end

local function first_values(buffer)
  if buffer.count == 0 then return "" end
  if waits(buffer.device) then return " (its device is busy: values not read)" end
  local texts = {}
  local values = buffer:to_table(1, math.min(buffer.count, FIRST_VALUES))
  for i, value in ipairs(values) do
    texts[i] = math.type(value) == "integer" and tostring(value) or ("%.7g"):format(value)
  end
  local more = buffer.count > #texts and ", ..." or ""
  return (" { %s%s }"):format(table.concat(texts, ", "), more)
end

local HANDLES = {
  ["cuda.buffer"] = function(buffer)
    return ("cuda.buffer: %d %s, %s, device %d%s"):format(buffer.count, buffer.dtype,
      size.format(buffer.bytes), buffer.device, first_values(buffer))
  end,
  ["cuda.stream"] = function(stream)
    return ("cuda.stream: device %d, %s"):format(stream.device,
      stream:query() and "idle" or "busy")
  end,
  ["cuda.event"] = function(event)
    return ("cuda.event: device %d, %s"):format(event.device,
      event:query() and "reached" or "not reached")
  end,
  ["stats.vector"] = function(vector)
    local texts = {}
    for i = 1, math.min(#vector, FIRST_VALUES) do texts[i] = ("%.7g"):format(vector[i]) end
    return ("stats.vector: %d numbers { %s%s }"):format(#vector, table.concat(texts, ", "),
      #vector > #texts and ", ..." or "")
  end,
}

local function handle_text(value)
  local metatable = debug.getmetatable(value)
  local describe = metatable and HANDLES[rawget(metatable, "__name")]
  if describe then
    local ok, text = pcall(describe, value) -- a closed one raises
    if ok then return text end
  end
  return tostring(value)
end

local function key_text(key)
  if type(key) == "string" and key:find("^[%a_][%w_]*$") then return key .. " = " end
  return ("[%s] = "):format(type(key) == "string" and quote(key) or tostring(key))
end

local function by_type_and_name(a, b)
  local is_ordered = type(a) == "string" or type(a) == "number"
  if type(a) == type(b) then return is_ordered and a < b or false end
  return type(a) < type(b)
end

local function sorted_keys(t, after)
  local keys = {}
  for key in next, t do
    local is_listed = math.type(key) == "integer" and key >= 1 and key <= after
    if not is_listed then keys[#keys + 1] = key end
  end
  table.sort(keys, by_type_and_name)
  return keys
end

local value_text

local function items_of(t, depth, seen)
  local items, count = {}, rawlen(t)
  for i = 1, math.min(count, MOST_ITEMS) do
    items[i] = value_text(rawget(t, i), depth + 1, seen)
  end
  if count > MOST_ITEMS then items[#items + 1] = ("... (%d in all)"):format(count) end
  local keys = sorted_keys(t, count)
  for i = 1, math.min(#keys, MOST_ITEMS) do
    items[#items + 1] = key_text(keys[i]) .. value_text(rawget(t, keys[i]), depth + 1, seen)
  end
  if #keys > MOST_ITEMS then items[#items + 1] = ("... (%d keys)"):format(#keys) end
  return items
end

local function lay_out(items, depth)
  local line, is_short = table.concat(items, ", "), true
  for _, item in ipairs(items) do is_short = is_short and not item:find("\n") end
  local indent = ("  "):rep(depth)
  if is_short and #line + #indent <= WIDEST - 8 then return "{ " .. line .. " }" end
  local inner = indent .. "  "
  return "{\n" .. inner .. table.concat(items, ",\n" .. inner) .. "\n" .. indent .. "}"
end

local function table_text(t, depth, seen)
  local metatable = debug.getmetatable(t)
  if metatable and rawget(metatable, "__tostring") then return tostring(t) end
  if seen[t] then return "{ ... itself }" end
  if depth >= DEEPEST then return next(t) and "{ ... }" or "{}" end
  if next(t) == nil then return "{}" end
  seen[t] = true
  local text = lay_out(items_of(t, depth, seen), depth)
  seen[t] = nil
  return text
end

function value_text(value, depth, seen)
  if type(value) == "string" then return quote(value) end
  if type(value) == "table" then return table_text(value, depth, seen) end
  if type(value) == "userdata" then return handle_text(value) end
  return tostring(value)
end

local function bound(text)
  local lines = {}
  for line in (text .. "\n"):gmatch("([^\n]*)\n") do lines[#lines + 1] = line end
  if #lines <= MOST_LINES then return text end
  local shown = table.concat(lines, "\n", 1, MOST_LINES)
  return ("%s\n... (%d more lines; print() shows all)"):format(shown, #lines - MOST_LINES)
end

---@param value any
---@return string
function display.text(value)
  return bound(value_text(value, 0, {}))
end

return display
