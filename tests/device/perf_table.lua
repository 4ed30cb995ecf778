--- The table at the end of perf.sh: nclua perf_table.lua FOLDER [--stub]. Medians over the
--- rounds, by size; fails if perf's definition of time is not nccl-tests'.
local lfs = require("lfs")
local files = require("nclua.files")
local parser = require("nclua.parse.nccl_tests")
local report = require("nclua.report")
local stats = require("nclua.stats")

local folder = assert(arg[1], "usage: nclua perf_table.lua FOLDER [--stub]")
local is_stub = arg[2] == "--stub" -- then times mean nothing

-- A size may be slower by this; a small one by what the other program's rounds differ.
local LIMIT = 1.03
local PLACES = { "out_of_place", "in_place" }
local PROGRAMS = { "nclua", "process", "threads" }

-- times[program][size][place]: one a round.
local function add(times, text, name)
  for _, run in ipairs(parser.parse(text).runs) do
    for _, row in ipairs(run.rows) do
      times[row.size_bytes] = times[row.size_bytes] or { out_of_place = {}, in_place = {} }
      for _, place in ipairs(PLACES) do
        local half = row[place]
        assert(half.wrong == 0, name .. ": wrong data")
        table.insert(times[row.size_bytes][place], half.time_us)
      end
    end
  end
end

local function read(program)
  local times, rounds = {}, 0
  for name in lfs.dir(folder) do
    if name:find("^" .. program .. "%-%d+%.txt$") then
      add(times, assert(files.read(folder .. "/" .. name)), name)
      rounds = rounds + 1
    end
  end
  return times, rounds
end

local function spread(list)
  return stats.max(list) / stats.median(list)
end

local function sizes_of(times)
  local sizes = {}
  for size in pairs(times) do sizes[#sizes + 1] = size end
  table.sort(sizes)
  return sizes
end

local all, rounds = {}, {}
for _, program in ipairs(PROGRAMS) do all[program], rounds[program] = read(program) end

local rows, logs, slow = {}, { process = {}, threads = {} }, {}
for _, size in ipairs(sizes_of(all.nclua)) do
  for _, place in ipairs(PLACES) do
    local mine = stats.median(all.nclua[size][place])
    local row = { bytes = size, place = place == "in_place" and "in" or "out", nclua = mine,
      verdict = "" }
    for _, other in ipairs({ "process", "threads" }) do
      local list = all[other][size] and all[other][size][place]
      if list then
        row[other] = stats.median(list)
        row[other .. "_ratio"] = mine / row[other]
        table.insert(logs[other], math.log(mine / row[other]))
      end
    end
    local list = all.process[size] and all.process[size][place]
    row.spread = list and spread(list)
    if not list then
      row.verdict = "no row of nccl-tests"
    elseif mine / row.process > math.max(LIMIT, row.spread) then
      row.verdict = "slower"
    end
    if row.verdict ~= "" then slow[#slow + 1] = size end
    rows[#rows + 1] = row
  end
end

local text = "Rounds: nclua %d, all_reduce_perf -g 2: %d, all_reduce_perf -t 2 -g 1: %d.\n"
print(text:format(rounds.nclua, rounds.process, rounds.threads))
print(report.table({ { "bytes", "bytes" }, { "place", "place" },
  { "nclua us", "nclua", "%.2f" }, { "-g 2 us", "process", "%.2f" },
  { "ratio", "process_ratio", "%.3f" }, { "its slowest round", "spread", "%.3f" },
  { "-t 2 us", "threads", "%.2f" }, { "ratio", "threads_ratio", "%.3f" },
  { "", "verdict" } }, rows))

local function geometric_mean(list)
  return #list > 0 and math.exp(stats.mean(list)) or 0 / 0
end

local mean = geometric_mean(logs.process)
print(("\nGeometric mean of the ratios: %.3f to -g 2 (limit 1.000), %.3f to -t 2; %d of %d "
  .. "rows over their limit."):format(mean, geometric_mean(logs.threads), #slow, #rows))
local is_complete = #rows > 0 and rounds.process > 0 and rounds.threads > 0
os.exit(is_complete and (is_stub or (mean <= 1 and #slow == 0)), true)
