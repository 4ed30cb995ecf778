--- Decode: what a token costs when every layer ends in small AllReduces. No more than the
--- communication.
local cuda = require("nclua.cuda")
local payload = require("nclua.payload")
local section = require("nclua.section")

local HIDDEN = 4096 -- elements a token
local FP16 = 2 -- bytes

local decode = section.new("decode", {
  title = "Decode communication-only replay",
  columns = "world_size tokens message_bytes collectives cycle duration_us mode",
  keys = "tokens message_bytes collectives mode",
  case = function(case)
    local name = ("tokens=%d;bytes=%d;calls=%d"):format(case.tokens, case.message_bytes,
      case.collectives)
    return case.mode == "eager" and name or name .. ";mode=" .. case.mode
  end,
  metric = "replay_total_us",
  summary = [[world_size tokens hidden_size message_bytes collectives cycles median_total_us
    p95_total_us min_total_us max_total_us cv_percent median_per_collective_us correct
    mode]],
  report = {
    { "TP", "world_size" },
    { "tokens", "tokens" },
    { "bytes/call", "message_bytes" },
    { "calls", "collectives" },
    { "mode", "mode" },
    { "median total us", "median_total_us", "%.3f" },
    { "per call us", "median_per_collective_us", "%.3f" },
    { "CV", "cv_percent", "%.2f%%" },
  },
})

function decode.cases(opt)
  local cases = {}
  for _, tokens in ipairs({ 1, 8, 32, 128 }) do
    for _, mode in ipairs(opt.graph and { "eager", "graph" } or { "eager" }) do
      cases[#cases + 1] = { tokens = tokens, message_bytes = tokens * HIDDEN * FP16,
        collectives = opt.decode_collectives, mode = mode }
    end
  end
  return cases
end

-- What one replay enqueues: the calls, or the graph that was made of them.
local function replay(mode, stream, enqueue)
  if mode == "eager" then return enqueue end
  local graph = assert(stream:capture(enqueue))
  graph:launch(stream) -- the first launch also uploads
  return function() graph:launch(stream) end, graph
end

function decode.measure(rank, case)
  local comm, stream = rank.comm, rank.stream
  local data <close> = payload.all_reduce(rank, "f16", case.tokens * HIDDEN)
  local x, y = data.send, data.recv
  local enqueue, _graph <close> = replay(case.mode, stream, function()
    for _ = 1, case.collectives do comm:all_reduce(x, y, "sum", stream) end
  end)
  for _ in rank:cycles() do
    data:clear(stream)
    rank:barrier()
    local duration_us = cuda.time(stream, enqueue)
    rank:emit({ duration_us = duration_us })
    rank:check("sum of every element", data:is_sum(stream))
  end
end

function decode.summarise(case)
  local total = case:slowest("duration_us")
  return {
    hidden_size = HIDDEN,
    cycles = total.samples,
    median_total_us = total.median,
    p95_total_us = total.p95,
    min_total_us = total.min,
    max_total_us = total.max,
    cv_percent = total.cv_percent,
    median_per_collective_us = total.median / case.collectives,
  }, total
end

return decode
