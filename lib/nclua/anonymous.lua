--- Host names and network addresses in texts, replaced by others: the same one by the same
--- one everywhere, so that what belonged together still does.
local anonymous = {}

local KEPT = { ["127.0.0.1"] = true, ["0.0.0.0"] = true, ["::1"] = true, ["::"] = true }

---@class anonymous
---@field hosts string[] names, longest first
---@field names table<string, string>
---@field known table<string, string> addresses
---@field count integer
local methods = {}
methods.__index = methods

---@param hosts string[] names to replace
---@return anonymous
function anonymous.new(hosts)
  local one = setmetatable({ hosts = {}, names = {}, known = {}, count = 0 }, methods)
  for _, host in ipairs(hosts) do
    if host ~= "" and host ~= "localhost" and not one.names[host] then
      one.hosts[#one.hosts + 1] = host
      one.names[host] = "host" .. #one.hosts
    end
  end
  table.sort(one.hosts, function(a, b) return #a > #b end)
  return one
end

local function other(self, address, form)
  if KEPT[address] then return nil end
  if not self.known[address] then
    self.count = self.count + 1
    self.known[address] = form:format(self.count)
  end
  return self.known[address]
end

local function is_v4(address)
  for part in address:gmatch("%d+") do
    if tonumber(part) > 255 then return false end
  end
  return true
end

-- Six pairs are a hardware address; "::" or eight groups are IPv6. A PCI address and a time
-- are neither.
local function with_colons(self, word)
  if word:find("^%x%x:%x%x:%x%x:%x%x:%x%x:%x%x$") then
    return other(self, word, "00:00:5e:00:53:%02x")
  end
  local _, colons = word:gsub(":", "")
  local is_v6 = word:find("^[%x:]*::[%x:]*$") and colons <= 7
    or colons == 7 and not word:find("%x%x%x%x%x")
  return is_v6 and word:find("%x") and other(self, word, "2001:db8::%x") or nil
end

local function escape(text)
  return (text:gsub("%W", "%%%0"))
end

---@param text string
---@return string
function methods:text(text)
  for _, host in ipairs(self.hosts) do
    text = text:gsub("%f[%w]" .. escape(host) .. "%f[^%w]", self.names[host])
  end
  text = text:gsub("%f[%w.]%d+%.%d+%.%d+%.%d+%f[^%w.]", function(address)
    return is_v4(address) and other(self, address, "192.0.2.%d") or nil
  end)
  return (text:gsub("[%w:]*:[%w:]*:[%w:]*", function(word)
    if not word:find("[^%x:]") then return with_colons(self, word) end
    local interface, address = word:match("^(.*[^%x:]%x*:)([%x:]+)$")
    local new = address and with_colons(self, address)
    return new and interface .. new
  end))
end

---The texts of a database, in place; what they were is not left in free pages either.
---@param db sqlite.database
function methods:database(db)
  local tables = {}
  for row in db:rows("select name from sqlite_master where type = 'table'") do
    tables[#tables + 1] = row.name
  end
  for _, name in ipairs(tables) do
    local changed = {}
    for row in db:rows(("select rowid as rowid_, * from \"%s\""):format(name)) do
      for column, value in pairs(row) do
        local text = type(value) == "string" and self:text(value)
        if text and text ~= value then
          changed[#changed + 1] = { column, text, row.rowid_ }
        end
      end
    end
    for _, one in ipairs(changed) do
      assert(db:exec(("update \"%s\" set \"%s\" = ? where rowid = ?"):format(name, one[1]),
        one[2], one[3]))
    end
  end
  assert(db:exec("vacuum"))
end

return anonymous
