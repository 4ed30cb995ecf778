--- My experiment: what an all_reduce of each size costs.
---
--- These lines are what `--help` and `nclua chapters` say of the script. Run it, read the
--- table it prints, then change what is measured.
--- needs: nclua >= 0.1
local chapter = require("nclua.chapter")
local cuda = require("nclua.cuda")
local measure = require("nclua.measure")
local section = require("nclua.section")

local FP32 = 4 -- bytes

-- A section is one experiment: its cases, what a rank measures, and the table it becomes.
local sizes = section.new("sizes", {
  title = "AllReduce by size",
  columns = "world_size bytes cycle duration_us", -- of a raw row, one a rank and cycle
  keys = "bytes", -- which of them make a case
  case = "bytes={bytes}",
  metric = "duration_us",
  summary = "world_size bytes cycles median_us p95_us busbw_gbps", -- of the table
  report = {
    { "bytes", "bytes" },
    { "median us", "median_us", "%.1f" },
    { "P95 us", "p95_us", "%.1f" },
    { "bus GB/s", "busbw_gbps", "%.2f" },
  },
})

-- All cases are measured one after the other, in the same order by every rank.
function sizes.cases(opt)
  local cases = {}
  for i, bytes in ipairs(measure.sizes(opt.smallest, opt.largest, 4)) do
    cases[i] = { bytes = bytes }
  end
  return cases
end

-- Runs in each rank, a process of its own with one device. `cycles` begins with warm-ups,
-- whose rows are not kept; `check` is a contract: if it fails, so does the run.
function sizes.measure(rank, case)
  local data <close> = assert(cuda.buffer("f32", case.bytes // FP32))
  for _ in rank:cycles() do
    data:fill(rank.index + 1)
    rank:barrier()
    local duration_us = cuda.time(rank.stream, function()
      rank.comm:all_reduce(data, data, "sum", rank.stream)
    end)
    rank:emit({ duration_us = duration_us })
    local expected = rank.count * (rank.count + 1) / 2
    rank:check("sum of every element", data:compare(expected) == 0)
  end
end

-- A row of the table from all rows of a case; a cycle counts with its slowest rank.
function sizes.summarise(case)
  local time = case:slowest("duration_us")
  local _, busbw = measure.all_reduce_bandwidth(case.bytes, time.median, case.world_size)
  return {
    cycles = time.samples,
    median_us = time.median,
    p95_us = time.p95,
    busbw_gbps = busbw,
  }, time
end

-- The default of an option gives its type; every chapter has --cycles, --root and others.
local mine = chapter.new({
  name = "NAME",
  experiment = "NAME", -- results go to ROOT/logs/NAME/RUN_ID/
  title = "My experiment",
  sections = { sizes },
  options = {
    { "ranks", 2, "ranks of the world", min = 1 },
    { "smallest", "4K", "smallest message", kind = "size", min = 4 },
  },
})

function mine.measure(run, opt)
  run:world(("world%d"):format(opt.ranks), opt.ranks, { sizes })
end

mine.boundary = { "Say here what the numbers do not show." }

mine:main()
