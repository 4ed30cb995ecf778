--- What was typed in former sessions: one entry a line in a file that only its owner may
--- read. Sessions that run at the same time append to it in turns.
local history = {}

local files = require("nclua.files")
local lines = require("nclua.lines")

local KEPT = 2000

---@return string? path nil if the user has no home
function history.path()
  local state = os.getenv("XDG_STATE_HOME")
  if not state or not state:find("^/") then
    local home = os.getenv("HOME")
    if not home or home == "" then return nil end
    state = home .. "/.local/state"
  end
  return state .. "/nclua/history"
end

local ESCAPED = { ["\\"] = "\\\\", ["\n"] = "\\n" }
local PLAIN = { ["\\\\"] = "\\", ["\\n"] = "\n" }

---@param text string
---@return string line
function history.encode(text)
  return (text:gsub("[\\\n]", ESCAPED))
end

---@param line string
---@return string text
function history.decode(line)
  return (line:gsub("\\[\\n]", PLAIN))
end

-- So that the file does not grow for ever.
local function shorten(path, entries)
  local temporary = files.temporary(path)
  if lines.append(temporary, table.concat(entries, "\n") .. "\n") then
    files.rename(temporary, path)
  end
end

---@param path string
---@return string[] entries the oldest first
function history.read(path)
  local all, entries = {}, {}
  for line in (files.read(path) or ""):gmatch("[^\n]+") do all[#all + 1] = line end
  local kept = table.move(all, math.max(1, #all - KEPT + 1), #all, 1, {})
  if #all > 2 * KEPT then shorten(path, kept) end
  for i, line in ipairs(kept) do entries[i] = history.decode(line) end
  return entries
end

---@param path string
---@param text string
---@return boolean? ok
---@return string? message
---@return string? code
function history.add(path, text)
  local ok, message, code = files.make_folder(files.folder(path))
  if not ok then return nil, message, code end
  return lines.append(path, history.encode(text) .. "\n")
end

return history
