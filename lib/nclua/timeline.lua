--- What a trace says about time: kernels, collectives across ranks, how busy devices were.
local timeline = {}

-- NCCL's kernels, old and new names.
local IS_COLLECTIVE = "(name glob 'ncclDevKernel*' or name glob 'ncclKernel*')"

local function all(db, sql, ...)
  local rows = {}
  for row in db:rows(sql, ...) do rows[#rows + 1] = row end
  return rows
end

---From the first to the last of what ran.
---@param db sqlite.database as trace_file.open gives it
---@return { start: integer, stop: integer }? span nil if nothing did
function timeline.span(db)
  local row = db:row([[select min(start) as start, max("end") as stop from (
    select start, "end" from kernels union all select start, "end" from copies
    union all select start, "end" from fills union all select start, "end" from calls
    union all select start, "end" from ranges)]])
  return row and row.start and row or nil
end

---@return table[] rows name, count, total_us, median_us, p95_us, max_us, grid, block
function timeline.kernels(db)
  return all(db, [[select name, count(*) as count, sum(us) as total_us,
    median(us) as median_us, percentile(us, 0.95) as p95_us, max(us) as max_us,
    group_concat(distinct grid) as grid, group_concat(distinct block) as block
    from kernels group by name order by total_us desc]])
end

-- A rank is a device of a process. The n-th collective of a name on one rank is the n-th
-- on the others: NCCL's calls come in the same order on all ranks of a communicator. With
-- ranks of several communicators, those of different size give a wrong skew, and are told
-- apart only by their kernels' names.
local MATCHED = ([[
  with ours as (select name, start, "end", us, grid, correlation, process, device,
      row_number() over (partition by process, device, name order by start) as nth
    from kernels where %s),
  enqueued as (select process, correlation, min(start) as start from calls
    where correlation is not null group by process, correlation),
  matched as (select o.name, o.nth, count(*) as ranks,
      max(o.start) - min(o.start) as skew_ns, max(o."end") - max(o.start) as last_ns,
      max(o."end") - min(o.start) as whole_ns, max(o.grid) as grid,
      median(o.start - e.start) as wait_ns
    from ours o left join enqueued e using (process, correlation) group by o.name, o.nth)
]]):format(IS_COLLECTIVE)

---Collectives: `wait_us` from the call to the kernel's start, `skew_us` between the first
---and the last rank to start, `last_us` from then to the end (what the collective itself
---takes), `whole_us` all of it.
---@return table[] rows name, count, ranks, grid, medians of the times and skew_p95_us
function timeline.collectives(db)
  return all(db, MATCHED .. [[select name, count(*) as count, max(ranks) as ranks,
    group_concat(distinct grid) as grid, median(wait_ns) / 1000.0 as wait_us,
    median(skew_ns) / 1000.0 as skew_us, percentile(skew_ns, 0.95) / 1000.0 as skew_p95_us,
    median(last_ns) / 1000.0 as last_us, median(whole_ns) / 1000.0 as whole_us
    from matched group by name order by sum(whole_ns) desc]])
end

-- Work of one device overlaps on several streams: an interval begins where nothing before
-- it still runs.
local BUSY = [[
  with work as (select process, device, start, "end" from kernels
    union all select process, device, start, "end" from copies
    union all select process, device, start, "end" from fills),
  seen as (select *, max("end") over (partition by process, device order by start, "end"
    rows between unbounded preceding and 1 preceding) as before from work)
]]

---@return table[] rows process, device, operations, span_us, idle_us, gaps, longest_us
function timeline.devices(db)
  return all(db, BUSY .. [[select process, device, count(*) as operations,
    (max("end") - min(start)) / 1000.0 as span_us,
    sum(max(0, start - ifnull(before, start))) / 1000.0 as idle_us,
    sum(start > before) as gaps,
    max(max(0, start - ifnull(before, start))) / 1000.0 as longest_us
    from seen group by process, device order by process, device]])
end

---@return table[] rows kind, count, bytes, total_us, gb_per_s
function timeline.copies(db)
  return all(db, [[select kind, count(*) as count, sum(bytes) as bytes, sum(us) as total_us,
    sum(bytes) / nullif(sum(us), 0) / 1000.0 as gb_per_s from copies
    group by kind order by total_us desc]])
end

---@return table[] rows name, count, total_us, median_us, max_us
function timeline.ranges(db)
  return all(db, [[select name, count(*) as count, sum(us) as total_us,
    median(us) as median_us, max(us) as max_us from ranges
    group by name order by total_us desc]])
end

---@return table[] rows name, count, total_us, median_us, max_us
function timeline.calls(db)
  return all(db, [[select name, count(*) as count, sum(us) as total_us,
    median(us) as median_us, max(us) as max_us from calls
    group by name order by total_us desc]])
end

---What was lost while recording.
---@return table[] rows source, count
function timeline.lost(db)
  local is_ours = db:value("select 1 from sqlite_master where name = 'NCLUA_LOST'")
  if not is_ours then return {} end
  return all(db, "select source, sum(count) as count from NCLUA_LOST group by source")
end

return timeline
