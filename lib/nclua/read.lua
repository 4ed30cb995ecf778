--- Reads anyone's evidence: recognises what a file is, and gives one kind of document for
--- all of them. Standard input and gzip are read too.
local csv_reader = require("nclua.read.csv")
local gzip = require("nclua.gzip")
local json_reader = require("nclua.read.json")
local sqlite_reader = require("nclua.read.sqlite")
local text_reader = require("nclua.read.text")
local xml_reader = require("nclua.read.xml")

local read = {}

---@class nclua.read.table
---@field name string
---@field columns string[]
---@field rows table<string, any>[]

---@class nclua.read.problem what was not understood
---@field line integer?
---@field why string
---@field text string?

---@class nclua.read.document
---@field path string "-" for standard input
---@field kind string "nccl log", "nccl-tests", "topology", "graphs", "nsys", …
---@field facts { [1]: string, [2]: any }[] in order
---@field tables nclua.read.table[] none is empty; the most telling first
---@field problems nclua.read.problem[] the first hundreds
---@field problem_count integer
---@field log nclua.nccl_log.result? for what compares logs

local HEAD, PIECE = 1 << 16, 1 << 18
local MOST_WHOLE = 1 << 28

-- Which reader a beginning belongs to.
local function reader_of(head)
  if head:sub(1, 16) == "SQLite format 3\0" then return sqlite_reader end
  local start = head:gsub("^\xef\xbb\xbf", "")
  if start:find("^%s*<[%?!%a]") then return xml_reader end
  if json_reader.is_one(start) then return json_reader end
  if csv_reader.is_one(start) then return csv_reader end
  return text_reader
end

-- Pieces of an input after its head has been looked at.
local function source_of(path, next_piece)
  local head, problem = "", nil
  while #head < HEAD do
    local piece, message = next_piece()
    if not piece then
      problem = message
      break
    end
    if piece == "" then break end
    head = head .. piece
  end
  local source = { path = path, head = head, problem = problem }
  local is_first = true
  --- The next piece, "" at the end; nil and a message if reading fails.
  function source.next()
    if is_first then
      is_first = false
      if head ~= "" then return head end
    end
    if problem then return nil, problem end
    return next_piece()
  end
  --- All of it, for what is only read whole.
  function source.all()
    local pieces, size = {}, 0
    while true do
      local piece, message = source.next()
      if not piece then return nil, message end
      if piece == "" then return table.concat(pieces) end
      size = size + #piece
      if size > MOST_WHOLE then return nil, "too large to be read whole" end
      pieces[#pieces + 1] = piece
    end
  end
  return source
end

local function document_of(source)
  if source.problem and source.head == "" then return nil, source.problem, "EIO" end
  local document, message = reader_of(source.head).read(source)
  if not document then return nil, message, "EINVAL" end
  document.path = source.path
  return document
end

--- Reads a file.
---@param path string? nil or "-": standard input
---@return nclua.read.document? document
---@return string? message
---@return string? code "ENOENT", "EINVAL" (nothing that nclua knows), …
function read.file(path)
  local reader <close>, message, code = gzip.open(path ~= "-" and path or nil)
  if not reader then return nil, message, code end
  return document_of(source_of(path or "-", function() return reader:read(PIECE) end))
end

--- Reads bytes, as if they came from a file.
---@param bytes string
---@param path string? what to call it, default "-"
---@return nclua.read.document? document
---@return string? message
---@return string? code
function read.bytes(bytes, path)
  local at = 1
  return document_of(source_of(path or "-", function()
    local piece = bytes:sub(at, at + PIECE - 1)
    at = at + #piece
    return piece
  end))
end

return read
