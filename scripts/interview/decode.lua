--- Decode: what a token costs when every layer ends in small AllReduces. No more than the
--- communication.
local cuda = require("nclua.cuda")
local payload = require("nclua.payload")
local section = require("nclua.section")

local HIDDEN = 4096 -- elements a token
local FP16 = 2 -- bytes

local decode = section.new("decode", {
  title = "Decode communication-only replay",
  columns = "world_size tokens message_bytes collectives cycle duration_us",
  keys = "tokens message_bytes collectives",
  case = "tokens={tokens};bytes={message_bytes};calls={collectives}",
  metric = "replay_total_us",
  summary = [[world_size tokens hidden_size message_bytes collectives cycles median_total_us
    p95_total_us min_total_us max_total_us cv_percent median_per_collective_us correct]],
  report = {
    { "TP", "world_size" },
    { "tokens", "tokens" },
    { "bytes/call", "message_bytes" },
    { "calls", "collectives" },
    { "median total us", "median_total_us", "%.3f" },
    { "per call us", "median_per_collective_us", "%.3f" },
    { "CV", "cv_percent", "%.2f%%" },
  },
})

function decode.cases(opt)
  local cases = {}
  for i, tokens in ipairs({ 1, 8, 32, 128 }) do
    cases[i] = { tokens = tokens, message_bytes = tokens * HIDDEN * FP16,
      collectives = opt.decode_collectives }
  end
  return cases
end

function decode.measure(rank, case)
  local comm, stream = rank.comm, rank.stream
  local data <close> = payload.all_reduce(rank, "f16", case.tokens * HIDDEN)
  local x, y = data.send, data.recv
  for _ in rank:cycles() do
    data:clear(stream)
    rank:barrier()
    local duration_us = cuda.time(stream, function()
      for _ = 1, case.collectives do comm:all_reduce(x, y, "sum", stream) end
    end)
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
