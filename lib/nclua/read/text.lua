--- Text: NCCL's log, tables of nccl-tests, torch's watchdog, nvidia-smi's matrices, in any
--- mixture and of any size.
local document = require("nclua.read.document")
local log_tables = require("nclua.read.log_tables")
local nccl_log = require("nclua.parse.nccl_log")
local nccl_tests = require("nclua.parse.nccl_tests")
local smi = require("nclua.parse.smi")
local tests_tables = require("nclua.read.tests_tables")

local text = {}

local MOST_MATRIX_LINES = 10000

-- A terminal's colours survive in copies of nvidia-smi's output.
local function is_matrix_line(line)
  local may_be = line:find("GPU", 1, true) or line:find("NIC", 1, true)
    or line:find(" = ", 1, true) or line:find("egend", 1, true)
  if not may_be then return false end
  local plain = line:gsub("\27%[[%d;]*m", "")
  return plain:find("^%s*GPU%d+%s") ~= nil or plain:find("^%s*NIC%d+[:%s]") ~= nil
    or plain:find("^%s*Legend:") ~= nil or plain:find("^%s*NIC Legend:") ~= nil
    or plain:find("^%s+[%u#]+%s+= %u") ~= nil
end

local function add_matrices(doc, lines)
  if #lines == 0 then return end
  local matrices, warnings = smi.parse(table.concat(lines, "\n"))
  local rows = {}
  for m, matrix in ipairs(matrices) do
    for _, from in ipairs(matrix.names) do
      local cells = matrix.cells[from] or {}
      for _, to in ipairs(matrix.names) do
        if cells[to] and cells[to] ~= "X" then
          rows[#rows + 1] = { matrix = m, kind = matrix.kind, from = from, to = to,
            cell = cells[to], nvlinks = smi.nvlinks(cells[to]),
            cpu_affinity = matrix.cpu_affinity[from],
            numa_affinity = matrix.numa_affinity[from] }
        end
      end
    end
  end
  doc:fact("matrices", #matrices)
  for m, matrix in ipairs(matrices) do
    doc:fact("matrix " .. m, ("%d GPUs, %s"):format(matrix.gpus, matrix.kind))
  end
  doc:table("matrix", { "matrix", "kind", "from", "to", "cell", "nvlinks", "cpu_affinity",
    "numa_affinity" }, rows)
  for _, warning in ipairs(warnings) do doc:problem(warning) end
end

local function add_watchdog(doc, watchdog)
  doc:table("timeouts", { "rank", "sequence", "operation", "elements_in", "elements_out",
    "timeout_ms", "ran_ms" }, watchdog.timeouts)
  doc:table("process_groups", { "rank", "group_id", "group_name", "sequence", "enqueued",
    "completed" }, watchdog.pg_status)
  if watchdog.left_out > 0 then
    doc:problem("watchdog lines that were not kept", nil, nil, watchdog.left_out)
  end
end

-- What it is, in the order of what is there most.
local function kind_of(log, tests, matrix_lines)
  local kinds = {}
  if log.totals.messages > 0 or #log.selections > 0 then kinds[#kinds + 1] = "nccl log" end
  if #tests.runs > 0 then kinds[#kinds + 1] = "nccl-tests" end
  if #log.watchdog.timeouts + #log.watchdog.pg_status > 0 then
    kinds[#kinds + 1] = "torch watchdog"
  end
  if #matrix_lines > 0 then kinds[#kinds + 1] = "nvidia-smi topo" end
  return #kinds > 0 and table.concat(kinds, " + ") or nil
end

local function feed(source, parser)
  while true do
    local piece, message = source.next()
    if not piece then return message end
    if piece == "" then return nil end
    parser:feed(piece)
  end
end

local NOTHING = "nothing that nclua knows: no NCCL log, no nccl-tests table, no topology,"
  .. " no trace"

---@param source table
---@return nclua.read.document? document
---@return string? message
function text.read(source)
  local tests, matrix_lines = nccl_tests.parser(), {}
  local parser = nccl_log.parser({
    on_text = function(line, number, rank)
      if is_matrix_line(line) and #matrix_lines < MOST_MATRIX_LINES then
        matrix_lines[#matrix_lines + 1] = line
      else
        tests:text(line, number, rank)
      end
    end,
  })
  local failure = feed(source, parser)
  local log, table_result = parser:finish(), tests:finish()
  local kind = kind_of(log, table_result, matrix_lines)
  if not kind then return nil, failure or NOTHING end
  local doc = document.new(kind)
  doc.log, doc.tests = log, table_result
  if failure then doc:problem(failure) end
  tests_tables.add(doc, table_result)
  add_watchdog(doc, log.watchdog)
  if log.totals.messages > 0 or #log.selections > 0 then log_tables.add(doc, log) end
  add_matrices(doc, matrix_lines)
  return doc
end

return text
