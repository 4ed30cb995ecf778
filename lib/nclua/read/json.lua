--- JSON that nccl-tests write.
local document = require("nclua.read.document")
local nccl_tests = require("nclua.parse.nccl_tests")
local tests_json = require("nclua.parse.nccl_tests.json")
local tests_tables = require("nclua.read.tests_tables")

local json = {}

---@param head string
---@return boolean
function json.is_one(head) return tests_json.is_one(head) end

---@param source table
---@return nclua.read.document? document
---@return string? message
function json.read(source)
  local text, message = source.all()
  if not text then return nil, message end
  local result, why = nccl_tests.parse_json(text)
  if not result then return nil, why end
  local doc = document.new("nccl-tests JSON")
  local run = result.runs[1]
  doc.tests = result
  doc:fact("file version", run.json_version)
  doc:fact("started", run.started)
  doc:fact("ended", run.ended)
  tests_tables.add(doc, result)
  return doc
end

return json
