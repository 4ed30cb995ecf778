--- Numerics: half precision rounds after every addition, so that a sum depends on who adds
--- what when. Every distinct assignment of a scenario's values to the ranks is summed in
--- fp16 and in fp32, where all these sums are exact.
local cuda = require("nclua.cuda")
local section = require("nclua.section")

-- A smaller world uses the first values, of which two suffice to show the effect; in a
-- larger one the remaining ranks add zero.
local SCENARIOS = {
  { "exact", { 1, 2, 3, 4 } }, -- the control: right in every order
  { "absorption", { 2048, 1, 1, 2 } }, -- 2048 + 1 is 2048: fp16 has 11 bits
  { "cancellation", { 4096, 1, -4096, 1 } }, -- what was absorbed is missed afterwards
  { "overflow", { 40000, 40000, -40000, -40000 } }, -- 80000 is more than fp16's 65504
}

local numerics = section.new("numerics", {
  title = "FP16 reduction counterexamples",
  columns = [[rank scenario permutation fp16_result fp32_result fp16_matches_real_sum
    fp32_matches_real_sum cycle]],
  keys = "scenario",
  case = "{scenario}",
  metric = "fp16_mismatch_count",
  summary_file = "numeric_summary.csv",
  summary = [[scenario cases fp16_mismatch_count fp16_nonfinite_count fp32_mismatch_count
    unique_fp16_results correct_replication_and_fp32_reference]],
  report = {
    { "scenario", "scenario" },
    { "permutations", "cases" },
    { "FP16 mismatches", "fp16_mismatch_count" },
    { "FP16 nonfinite", "fp16_nonfinite_count" },
    { "FP32 mismatches", "fp32_mismatch_count" },
    { "FP16 outputs", "unique_fp16_results" },
  },
})

function numerics.cases()
  local cases = {}
  for i, scenario in ipairs(SCENARIOS) do cases[i] = { scenario = scenario[1] } end
  return cases
end

local function values_of(name, count)
  for _, scenario in ipairs(SCENARIOS) do
    if scenario[1] == name then
      return table.move(scenario[2], 1, math.min(count, #scenario[2]), 1, {})
    end
  end
end

-- Every distinct order of the values, the smallest first.
local function permutations(values)
  if #values == 0 then return { {} } end
  local sorted, found = table.move(values, 1, #values, 1, {}), {}
  table.sort(sorted)
  for i, value in ipairs(sorted) do
    if value ~= sorted[i - 1] then
      local rest = table.move(sorted, 1, #sorted, 1, {})
      table.remove(rest, i)
      for _, order in ipairs(permutations(rest)) do
        found[#found + 1] = table.move(order, 1, #order, 2, { value })
      end
    end
  end
  return found
end

-- One element a rank: how the sum comes out here, and whether it does so everywhere.
local function adder(rank, dtype)
  local one = assert(cuda.buffer(dtype, 1))
  local all = assert(cuda.buffer(dtype, rank.count))
  return function(value)
    one:fill(value, rank.stream)
    rank.comm:all_reduce(one, one, "sum", rank.stream)
    rank.comm:all_gather(one, all, rank.stream)
    rank.stream:sync()
    local results = all:to_table()
    local mine = results[rank.index + 1]
    for _, other in ipairs(results) do
      if other ~= mine and (other == other or mine == mine) then return mine, false end
    end
    return mine, true
  end
end

local function sum_of(values)
  local sum = 0.0
  for _, value in ipairs(values) do sum = sum + value end
  return sum
end

function numerics.measure(rank, case)
  local add16, add32 = adder(rank, "f16"), adder(rank, "f32")
  local values = values_of(case.scenario, rank.count)
  local real = sum_of(values)
  for permutation in rank:each(permutations(values)) do
    local mine = permutation[rank.index + 1] or 0
    local fp16, fp16_replicated = add16(mine)
    local fp32, fp32_replicated = add32(mine)
    rank:emit({
      permutation = table.concat(permutation, ","),
      fp16_result = fp16,
      fp32_result = fp32,
      fp16_matches_real_sum = fp16 == real,
      fp32_matches_real_sum = fp32 == real,
    })
    rank:check("the same on every rank", fp16_replicated and fp32_replicated)
    rank:check("fp32 is the real sum", fp32 == real)
  end
end

-- The results that came out, "/" between them, without the decimals of whole numbers.
local function unique(rows)
  local texts, seen = {}, {}
  for _, row in ipairs(rows) do
    local text = ("%.10g"):format(row.fp16_result)
    if not seen[text] then texts[#texts + 1], seen[text] = text, true end
  end
  table.sort(texts)
  return table.concat(texts, "/")
end

function numerics.summarise(case)
  local first = case:where({ rank = 0 }) -- the contracts say that the others are equal
  local function count(is_counted)
    local n = 0
    for _, row in ipairs(first.rows) do n = n + (is_counted(row) and 1 or 0) end
    return n
  end
  local mismatches = count(function(row) return not row.fp16_matches_real_sum end)
  local wrong = count(function(row) return not row.fp32_matches_real_sum end)
  return {
    cases = #first.rows,
    fp16_mismatch_count = mismatches,
    fp16_nonfinite_count = count(function(row)
      return row.fp16_result - row.fp16_result ~= 0
    end),
    fp32_mismatch_count = wrong,
    unique_fp16_results = unique(first.rows),
    correct_replication_and_fp32_reference = wrong == 0 and case.correct,
  }, { median = mismatches, samples = #first.rows }
end

return numerics
