--- nclua predict: what NCCL would choose, and why, without a machine.
local command = require("nclua.command")
local cost_model = require("nclua.cost_model")
local explain = require("nclua.explain")
local presets = require("nclua.presets")
local size = require("nclua.size")

local OPTIONS = {
  { "preset", "dgx-h100", "machine: " .. table.concat(presets.names(), ", ") },
  { "nodes", "1", "how many of them, comma-separated, 1 to 16384", kind = "integers" },
  { "collective", "all_reduce", table.concat(cost_model.names.COLLECTIVES, ", ") },
  { "version", "2.28.3", "NCCL's version, 2.18.1 to 2.30.7" },
  { "from", "4", "smallest message a rank", kind = "size", min = 1 },
  { "to", "1G", "largest message a rank", kind = "size", min = 1 },
  { "algo", "", "as NCCL_ALGO" },
  { "proto", "", "as NCCL_PROTO" },
  { "explain", false, "show every term of the formula, where the choice changes" },
}

local function fail(message)
  io.stderr:write("nclua predict: ", message, "\n")
  os.exit(1)
end

local function explain_choice(model, collective, bytes, ranking)
  local model_bytes = cost_model.model_bytes(model, collective, bytes)
  for i = 1, math.min(2, #ranking) do
    local cell = ranking[i]
    for _, line in ipairs(explain.cell(model, collective, cell.algorithm, cell.protocol,
      model_bytes)) do
      print("        " .. line)
    end
  end
end

local function print_row(bytes, choice, ranking)
  local others = {}
  for i = 2, math.min(3, #ranking) do
    others[#others + 1] = ("%s/%s %.1f"):format(ranking[i].algorithm, ranking[i].protocol,
      ranking[i].time_us)
  end
  print(("%9s  %-14s %12.2f %3d x %3d  %s"):format(size.format(bytes),
    choice.algorithm .. "/" .. choice.protocol, choice.time_us, choice.channels,
    choice.threads, table.concat(others, ", ")))
end

local function sizes(from, to)
  local list = {}
  while from <= to do
    list[#list + 1] = from
    from = from * 2
  end
  return list
end

local function predict(opt, nodes)
  local system, source = presets.system(opt.preset, nodes, opt.version)
  if not system then fail(source) end
  system.algo, system.proto = opt.algo, opt.proto
  local model, message = cost_model.model(system)
  if not model then fail(message) end
  local title = presets.machines[opt.preset].title
  print(("\n%s; nodes: %d, ranks: %d, %s, NCCL %s"):format(title, nodes, system.ranks,
    opt.collective, opt.version))
  print("graphs: " .. source .. (model.note and "; " .. model.note or ""))
  print(("%9s  %-14s %12s %9s  %s"):format("bytes", "choice", "predicted us",
    "chan thr", "runners-up, us"))
  local last
  for _, bytes in ipairs(sizes(opt.from, opt.to)) do
    local choice, why = cost_model.select(model, opt.collective, bytes)
    if not choice then fail(why) end
    local ranking = explain.ranking(model, choice.costs)
    print_row(bytes, choice, ranking)
    local name = choice.algorithm .. "/" .. choice.protocol
    if opt.explain and name ~= last then
      explain_choice(model, opt.collective, bytes, ranking)
      print("        would flip it: " .. explain.flip(ranking[1], ranking[2]))
    end
    last = name
  end
end

local opt = command.options("nclua predict",
  "What NCCL would choose for every size on a machine, how long it expects that to take,\n"
    .. "and what came second.", OPTIONS, arg)
opt.collective = cost_model.names.collective(opt.collective)
  or fail("unknown collective '" .. opt.collective .. "'")
for _, nodes in ipairs(opt.nodes) do
  if nodes < 1 or nodes > 16384 then
    fail(("%d nodes: expected 1 to 16384"):format(nodes))
  end
  predict(opt, nodes)
end
