--- JSON as far as it goes: a file that ends in the middle, or that holds bare inf and nan,
--- still gives what was complete. Pure.
local lenient_json = {}

local MOST_DEPTH = 100

local Reader = {}
Reader.__index = Reader

-- What ends the reading: the text is over, or not JSON from here on.
function Reader:stop(why)
  if not self.problem then self.problem = ("byte %d: %s"):format(self.at, why) end
  return nil, false
end

function Reader:skip()
  self.at = self.text:find("[^ \t\r\n]", self.at) or #self.text + 1
  return self.text:sub(self.at, self.at)
end

local ESCAPES = {
  b = "\b", f = "\f", n = "\n", r = "\r", t = "\t", ["/"] = "/", ["\\"] = "\\",
  ['"'] = '"',
}

-- One escape after its backslash: the text it stands for, and its length.
local function escape(text, at)
  local letter = text:sub(at, at)
  if letter ~= "u" then return ESCAPES[letter], 1 end
  local digits = text:match("^u(%x%x%x%x)", at)
  if not digits then return nil end
  local code = tonumber(digits, 16)
  local low = text:match("^u%x%x%x%x\\u([dD][c-fC-F]%x%x)", at)
  if code >= 0xd800 and code < 0xdc00 and low then
    return utf8.char(0x10000 + ((code - 0xd800) << 10) + tonumber(low, 16) - 0xdc00), 11
  end
  return (code >= 0xd800 and code < 0xe000) and "?" or utf8.char(code), 5
end

function Reader:string()
  local pieces, from = {}, self.at + 1
  while true do
    local stop = self.text:find('["\\]', from)
    if not stop then return self:stop("a string that never ends") end
    pieces[#pieces + 1] = self.text:sub(from, stop - 1)
    if self.text:sub(stop, stop) == '"' then
      self.at = stop + 1
      return table.concat(pieces), true
    end
    local plain, length = escape(self.text, stop + 1)
    if not plain then return self:stop("an unknown escape") end
    pieces[#pieces + 1] = plain
    from = stop + 1 + length
  end
end

local WORDS = {
  ["true"] = true, ["false"] = false, inf = math.huge, ["-inf"] = -math.huge,
  nan = 0 / 0, ["-nan"] = 0 / 0, Infinity = math.huge, ["-Infinity"] = -math.huge,
  NaN = 0 / 0,
}

function Reader:word()
  local word = self.text:match("^[%w.+-]+", self.at)
  if not word then return self:stop("no value") end
  self.at = self.at + #word
  if self.at > self.length then return self:stop("the text ends in a value") end
  if word == "null" then return nil, true end
  local value = WORDS[word]
  if value == nil then value = tonumber(word) end
  if value == nil then return self:stop("no value") end
  return value, true
end

-- A list drops its last item if that is not complete.
function Reader:list(depth)
  local list, n = {}, 0
  self.at = self.at + 1
  if self:skip() == "]" then
    self.at = self.at + 1
    return list, true
  end
  while true do
    local value, is_whole = self:value(depth)
    if not is_whole then return list, false end
    n = n + 1
    list[n] = value
    local mark = self:skip()
    self.at = self.at + 1
    if mark == "]" then return list, true end
    if mark ~= "," then
      self:stop("a list that never ends")
      return list, false
    end
  end
end

-- An object keeps the part of a list or object that its last member has.
function Reader:object(depth)
  local object = {}
  self.at = self.at + 1
  if self:skip() == "}" then
    self.at = self.at + 1
    return object, true
  end
  while true do
    if self:skip() ~= '"' then
      self:stop("an object that never ends")
      return object, false
    end
    local name, is_name = self:string()
    if not is_name then return object, false end
    if self:skip() ~= ":" then
      self:stop("a name without a value")
      return object, false
    end
    self.at = self.at + 1
    local value, is_whole = self:value(depth)
    if is_whole or type(value) == "table" then object[name] = value end
    if not is_whole then return object, false end
    local mark = self:skip()
    self.at = self.at + 1
    if mark == "}" then return object, true end
    if mark ~= "," then
      self:stop("an object that never ends")
      return object, false
    end
  end
end

--- A value, and whether it is complete.
function Reader:value(depth)
  if depth > MOST_DEPTH then return self:stop("nested too deep") end
  local mark = self:skip()
  if mark == "{" then return self:object(depth + 1) end
  if mark == "[" then return self:list(depth + 1) end
  if mark == '"' then return self:string() end
  return self:word()
end

--- The first value of a text. null is nil.
---@param text string
---@return any value as far as it goes
---@return string? problem nil if it was complete; else where and why it ends
function lenient_json.parse(text)
  local reader = setmetatable({ text = text, length = #text, at = 1 }, Reader)
  local value = reader:value(1)
  return value, reader.problem
end

return lenient_json
