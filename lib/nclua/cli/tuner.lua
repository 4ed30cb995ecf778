--- nclua tuner show PLUGIN, nclua tuner diff A B: what tuner plugins decide, with no GPU.
local command = require("nclua.command")
local cost_model = require("nclua.cost_model")
local decisions = require("nclua.decisions")
local plugins = require("nclua.plugins")
local presets = require("nclua.presets")
local process = require("nclua.process")
local programs = require("nclua.programs")
local size = require("nclua.size")
local tuner = require("nclua.tuner")

local OPTIONS = {
  { "preset", "dgx-h100", "machine: " .. table.concat(presets.names(), ", ") },
  { "nodes", "1", "how many of them, comma-separated", kind = "integers" },
  { "ranks", "auto", "ranks in all, one number for each of --nodes; auto: all GPUs",
    kind = "integers" },
  { "collective", "all", "all, or " .. table.concat(cost_model.names.COLLECTIVES, ", ") },
  { "version", "2.28.3", "NCCL's version, 2.18.1 to 2.30.7" },
  { "from", "4", "smallest message, in the model's bytes", kind = "size", min = 1 },
  { "to", "16G", "largest message", kind = "size", min = 1 },
}

local USAGE = "nclua tuner show PLUGIN or nclua tuner diff PLUGIN PLUGIN"
local DESCRIPTION = [[
What a tuner plugin decides for every collective and size, asked as NCCL would ask it, with
costs that NCCL's model gives on a machine. Only where its decision changes is printed.

  ]] .. USAGE .. [[


PLUGIN is a shared object, "nclua" for nclua's own, or a CSV of rules for nclua's own (show
only). all_gather and reduce_scatter count the bytes of all ranks.]]

local EXIT_USAGE = 2

local function fail(message, status)
  io.stderr:write("nclua tuner: ", message, "\n")
  os.exit(status or 1)
end

-- The words before the first option.
local function split(args)
  local words, rest = {}, {}
  for _, word in ipairs(args) do
    if #rest > 0 or word:find("^%-") then
      rest[#rest + 1] = word
    else
      words[#words + 1] = word
    end
  end
  return words, rest
end

local function model_of(opt, i)
  local nodes = opt.nodes[i]
  if nodes < 1 or nodes > 16384 then
    fail(("--nodes: %d is not 1 to 16384"):format(nodes), EXIT_USAGE)
  end
  local system, message = presets.system(opt.preset, nodes, opt.version)
  if not system then fail(message, EXIT_USAGE) end
  if opt.ranks ~= "auto" then system.ranks = opt.ranks[i] end
  if system.ranks < 2 or system.ranks < nodes then
    fail(("--ranks: %d ranks on %d nodes"):format(system.ranks, nodes), EXIT_USAGE)
  end
  local model, why = cost_model.model(system)
  if not model then fail(why, EXIT_USAGE) end
  return model
end

local function open(path)
  if path == "nclua" then path = assert(plugins.file("tuner")) end
  if not path:find("/") then path = "./" .. path end
  local plugin, message = tuner.open(path)
  if not plugin then fail(message) end
  return plugin
end

-- Ranges of every world and collective: fn(title, ranges of each plugin).
local function each(opt, paths, fn)
  local opened = {}
  for i, path in ipairs(paths) do opened[i] = open(path) end
  local collectives = opt.collective == "all" and cost_model.names.COLLECTIVES
    or { cost_model.names.collective(opt.collective)
      or fail("unknown collective '" .. opt.collective .. "'", EXIT_USAGE) }
  for w, nodes in ipairs(opt.nodes) do
    local model = model_of(opt, w)
    for _, collective in ipairs(collectives) do
      local ranges = {}
      for i, plugin in ipairs(opened) do
        local context <close>, why =
          plugin:context({ ranks = model.system.ranks, nodes = nodes })
        if not context then fail(("%s: %s"):format(paths[i], why)) end
        ranges[i] = decisions.ranges(context,
          { collective = collective, model = model, from = opt.from, to = opt.to })
      end
      fn(("%s, %d ranks on %d nodes"):format(collective, model.system.ranks, nodes),
        ranges)
    end
  end
  return opened
end

local function span(range)
  return ("%10s to %10s"):format(size.format(range.from), size.format(range.to))
end

local function print_ranges(title, ranges)
  print(title)
  for _, range in ipairs(ranges[1]) do
    local is_other = range.what ~= "NCCL's own" and range.what ~= range.own
      and not range.what:find("^fails")
    print(("  %s  %s%s"):format(span(range), range.what,
      is_other and "   instead of " .. range.own or ""))
  end
end

-- nclua's own plugin reads its rules from its environment: in a process of its own.
local function show_rules(path, rest)
  local argv = { programs.own(), "tuner", "show", "nclua" }
  table.move(rest, 1, #rest, #argv + 1, argv)
  local result = assert(process.run(argv, { env = { NCLUA_TUNER_RULES = path },
    stdout = "inherit", stderr = "inherit" }))
  os.exit(result.exit_code or 1)
end

local function show(opt, paths, rest)
  if paths[1]:find("%.csv$") then return show_rules(paths[1], rest) end
  local opened = each(opt, paths, print_ranges)
  print(("plugin '%s', tuner ABI %d"):format(opened[1].name, opened[1].abi_version))
end

local function diff(opt, paths)
  local count = 0
  each(opt, paths, function(title, ranges)
    local list = decisions.diff(ranges[1], ranges[2])
    if #list > 0 then print(title) end
    for _, one in ipairs(list) do
      print(("  %s  %s | %s"):format(span(one), one.a, one.b))
    end
    count = count + #list
  end)
  if count == 0 then print("no difference") end
  os.exit(count == 0 and 0 or 1)
end

local COMMANDS = { show = { show, 1 }, diff = { diff, 2 } }

local words, rest = split(arg)
local opt = command.options("nclua tuner", DESCRIPTION, OPTIONS, rest)
local chosen = COMMANDS[table.remove(words, 1) or ""]
if not chosen or #words ~= chosen[2] then fail("expected " .. USAGE, EXIT_USAGE) end
if opt.ranks ~= "auto" and #opt.ranks ~= #opt.nodes then
  fail("--ranks needs one number for each of --nodes", EXIT_USAGE)
end
chosen[1](opt, words, rest)
