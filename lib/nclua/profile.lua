--- Which kernels a command runs, with Nsight Systems where it works and nclua's own tracer
--- elsewhere: the same question, the same rows.
local files = require("nclua.files")
local process = require("nclua.process")
local programs = require("nclua.programs")
local trace_file = require("nclua.trace_file")

local profile = {}

---@class nclua.profile.options
---@field file string where the SQLite file goes
---@field tool? "auto"|"nsys"|"nclua" default "auto"
---@field env? table<string, string|number>
---@field unset? string[]
---@field cwd? string
---@field timeout_s? number of each run of the command

---@class nclua.profile.kernel
---@field name string
---@field grid_x integer? of NCCL's kernels: channels
---@field block_x integer?
---@field start_ns integer
---@field end_ns integer
---@field device integer?
---@field stream integer?
---@field process integer? number of the operating system

---@class nclua.profile.result
---@field tool "nsys"|"nclua"
---@field file string an SQLite file in Nsight Systems' schema
---@field kernels nclua.profile.kernel[] in order of their start
---@field process process.result of the command
---@field nsys_message? string why nsys was not used, or what it did wrong

local KERNELS = [[select name, grid as grid_x, block as block_x, start as start_ns,
  "end" as end_ns, device, stream, process from kernels where name glob ? order by start]]

---The kernels of a trace whose names fit, such as "ncclDevKernel*".
---@param file string
---@param pattern? string a glob, default "*"
---@return nclua.profile.kernel[]? kernels
---@return string? message
---@return string? code
function profile.kernels(file, pattern)
  local db <close>, message, code = trace_file.open(file)
  if not db then return nil, message, code end
  local kernels = {}
  for row in db:rows(KERNELS, pattern or "*") do kernels[#kernels + 1] = row end
  return kernels
end

local function command_options(options)
  return { env = options.env, unset = options.unset, cwd = options.cwd,
    timeout_s = options.timeout_s }
end

local function failure(what, result)
  local text = (result.stderr .. result.stdout):match("[^\n]*%S[^\n]*") or ""
  return ("%s: %s%s"):format(what, result.timed_out and "timed out"
    or result.signal or ("exit status %d"):format(result.exit_code), text ~= ""
    and ": " .. text or "")
end

-- nsys makes NAME.nsys-rep (before 2021.4 NAME.qdrep) of the name it is given.
local function report_of(base)
  for _, ending in ipairs({ ".nsys-rep", ".qdrep" }) do
    if files.exists(base .. ending) then return base .. ending end
  end
end

local function record(nsys, base, argv, options)
  local line = { nsys, "profile", "--trace=cuda,nvtx", "--sample=none",
    "--force-overwrite=true", "--output=" .. base }
  table.move(argv, 1, #argv, #line + 1, line)
  local result, message = process.run(line, command_options(options))
  if not result then return nil, message end
  local report = report_of(base)
  if not report then return nil, failure("nsys profile wrote no report", result) end
  return report, result
end

local function export(nsys, report, file)
  local result, message = process.run({ nsys, "export", "--type=sqlite",
    "--force-overwrite=true", "--output=" .. file, report }, { timeout_s = 300 })
  if not result then return nil, message end
  if not result.ok then return nil, failure("nsys export", result) end
  return true
end

-- nsys may run and record nothing: an old one for a new driver, a container without rights.
local function by_nsys(argv, options)
  local nsys = programs.find("nsys")
  if not nsys then return nil, "nsys is not on the PATH" end
  local base = files.temporary(options.file)
  local report, result = record(nsys, base, argv, options)
  if not report then return nil, result end
  local ok, message = export(nsys, report, options.file)
  os.remove(report)
  if not ok then return nil, message end
  local kernels, why = profile.kernels(options.file)
  if not kernels then return nil, why end
  if #kernels == 0 then return nil, "nsys recorded no kernel" end
  return { tool = "nsys", file = options.file, kernels = kernels, process = result }
end

local function by_nclua(argv, options)
  local more = command_options(options)
  more.trace = options.file
  local result, message, code = process.run(argv, more)
  if not result then return nil, message, code end
  if not result.trace then
    return nil, failure("the command left no trace", result), "no_trace"
  end
  local kernels, why, which = profile.kernels(options.file)
  if not kernels then return nil, why, which end
  return { tool = "nclua", file = options.file, kernels = kernels, process = result }
end

---Runs a command and says which kernels ran. With "auto" a command that nsys cannot record
---runs once more. Whether the command itself succeeded is in `process`.
---@param argv string[]
---@param options nclua.profile.options
---@return nclua.profile.result? result
---@return string? message
---@return string? code
function profile.run(argv, options)
  local tool = options.tool or "auto"
  if tool == "nclua" then return by_nclua(argv, options) end
  local result, message = by_nsys(argv, options)
  if result then return result end
  if tool == "nsys" then return nil, message, "nsys" end
  local why, code
  result, why, code = by_nclua(argv, options)
  if not result then return nil, ("%s; %s"):format(message, why), code end
  result.nsys_message = message
  return result
end

return profile
