--- The table at the end of run.sh: nclua table.lua FOLDER [--stub]. Reads paired-*.csv,
--- floor-*.csv and steps.tsv there; exits 1 if a limit is missed or a step failed.
local lfs = require("lfs")
local stats = require("nclua.stats")

local folder = assert(arg[1], "usage: nclua table.lua FOLDER [--stub]")
local is_stub = arg[2] == "--stub" -- then times mean nothing
local failed = false

--- Rows of program,case,bytes,metric,cycle,rank,value; the header and torn lines fall out.
local function read(path, rows)
  for line in io.lines(path) do
    local program, case, bytes, metric, cycle, rank, value =
      line:match("^(%l+),(%w+),(%d+),([%w_]+),(%d+),(%d+),([%d.]+)$")
    if program and tonumber(value) then
      rows[#rows + 1] = { program = program, case = case, bytes = tonumber(bytes),
        metric = metric, cycle = path .. ":" .. cycle, rank = rank,
        value = tonumber(value) }
    end
  end
  return rows
end

local function files(pattern)
  local found = {}
  for name in lfs.dir(folder) do
    if name:match(pattern) then found[#found + 1] = name end
  end
  table.sort(found)
  return found
end

--- The median over cycles of the slowest rank of each, or nil.
local function median(rows, program, case, bytes, metric)
  local slowest, list = {}, {}
  for _, r in ipairs(rows) do
    if r.program == program and r.case == case and r.metric == metric
      and r.bytes == bytes then
      slowest[r.cycle] = math.max(slowest[r.cycle] or 0, r.value)
    end
  end
  for _, value in pairs(slowest) do list[#list + 1] = value end
  if #list > 0 then return stats.median(list), #list end
end

--- { title, case, bytes, metric, limit on the ratio, or limit on the difference in us }
local LINES = {
  { "decode, eager", "eager", 8 << 10, "gpu_us", 1.03 },
  { "decode, eager", "eager", 64 << 10, "gpu_us", 1.03 },
  { "decode, eager", "eager", 256 << 10, "gpu_us", 1.03 },
  { "decode, eager", "eager", 1 << 20, "gpu_us", 1.03 },
  { "decode, one burst", "burst", 8 << 10, "gpu_us", 1.03 },
  { "decode, one burst", "burst", 64 << 10, "gpu_us", 1.03 },
  { "decode, one burst", "burst", 256 << 10, "gpu_us", 1.03 },
  { "decode, one burst", "burst", 1 << 20, "gpu_us", 1.03 },
  { "decode, graph", "graph", 8 << 10, "gpu_us", 1.01 },
  { "decode, graph", "graph", 64 << 10, "gpu_us", 1.01 },
  { "decode, graph", "graph", 256 << 10, "gpu_us", 1.01 },
  { "decode, graph", "graph", 1 << 20, "gpu_us", 1.01 },
  { "80 MiB in 1280 pieces", "pieces", 64 << 10, "gpu_us", 1.05 },
  { "80 MiB, one burst", "burstpieces", 64 << 10, "gpu_us", 1.05 },
  { "host, a call", "eager", 8 << 10, "host_us_a_call", nil, 0.3 },
  { "host, a call", "eager", 1 << 20, "host_us_a_call", nil, 0.3 },
  { "start to first AllReduce", "start", 8 << 10, "first_us", nil, 50000 },
}

local function verdict(line, c, lua)
  local ok
  if line[5] then ok = lua <= line[5] * c else ok = lua - c <= line[6] end
  failed = failed or not (ok or is_stub)
  local limit = line[5] and ("x %.2f"):format(line[5]) or ("+ %g"):format(line[6])
  return ("%s %s"):format(limit, ok and "ok" or "MISSED")
end

local function print_table(title, rows, judged)
  if #rows == 0 then return end
  print("\n" .. title)
  print("| what | bytes | C, us | Lua, us | ratio | difference | limit | cycles |")
  print("|---|---:|---:|---:|---:|---:|---|---:|")
  for _, line in ipairs(LINES) do
    local name, case, bytes, metric = table.unpack(line, 1, 4)
    local c, count = median(rows, "c", case, bytes, metric)
    local lua = median(rows, "lua", case, bytes, metric)
    if c and lua then
      local limit = (judged or case == "start") and verdict(line, c, lua) or ""
      print(("| %s | %d | %.3f | %.3f | %.4f | %.3f | %s | %d |"):format(
        name, bytes, c, lua, lua / c, lua - c, limit, count))
    end
  end
end

for _, name in ipairs(files("^paired%-.*%.csv$")) do
  local rows = read(folder .. "/" .. name, {})
  print_table("In turns in one process a GPU: " .. name, rows, true)
end

local separate = {}
for _, name in ipairs(files("^floor%-.*%.csv$")) do
  read(folder .. "/" .. name, separate)
end
print_table("Separate processes in turns (only the start is judged: they differ by more)",
  separate, false)

print("\n| step | result | seconds |\n|---|---|---:|")
for line in io.lines(folder .. "/steps.tsv") do
  local step, status, seconds = line:match("^([^\t]*)\t([^\t]*)\t([^\t]*)$")
  failed = failed or status ~= "0"
  local result = status == "0" and "ok" or status == "124" and "TIMED OUT"
    or "FAILED, status " .. status
  print(("| %s | %s | %s |"):format(step, result, seconds))
end
os.exit(not failed)
