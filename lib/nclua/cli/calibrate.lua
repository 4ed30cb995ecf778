--- nclua calibrate: measures the CPU backend, so that it chooses well on this machine.
local backend = require("nclua.inventory").backend
local calibrate = require("nclua.calibrate")
local command = require("nclua.command")

local options = command.options("nclua calibrate",
  "Measures what the CPU backend's algorithms and protocols cost on this machine, and keeps"
  .. " the figures: communicators choose by them from then on.",
  {
    { "rounds", 9, "times that each figure is measured", min = 1 },
    { "dry_run", false, "print the figures, keep nothing" },
  }, arg)

local function fail(message)
  io.stderr:write("nclua calibrate: ", message, "\n")
  os.exit(1, true)
end

if backend() ~= "cpu" then fail("only the CPU backend has figures: --backend cpu") end

local cells, message = calibrate.run({ rounds = options.rounds, on_progress = function(text)
  io.stderr:write("measuring: ", text, "\n")
end })
if not cells then return fail(message) end

print("algorithm  protocol  base µs   step µs     GB/s   shared: step µs     GB/s  off by")
for _, c in ipairs(cells) do
  print(("%-10s %-8s %8.2f %9.2f %8.2f %17.2f %8.2f %5.0f %%"):format(c.algorithm,
    c.protocol, c.base_us, c.hop_us, c.bandwidth_gbps, c.shared_hop_us,
    c.shared_bandwidth_gbps, c.error_percent))
end
if options.dry_run then return end

-- Only now: a process that has used a device cannot fork.
local cuda, nccl = require("nclua.cuda"), require("nclua.nccl")
local path = assert(nccl.info()).calibration_file
if not path then
  return fail("no place for the figures: set HOME, or NCLUA_CPU_CONSTANTS to a file")
end
local device = assert(cuda.devices())[1]
local text = calibrate.text(cells, {
  date = os.date("%Y-%m-%d"), cpu = device.name:gsub(" %(nclua.*", ""),
  cores = device.multiprocessors,
})
local ok, why = calibrate.write(path, text)
if not ok then fail(why) end
print("kept in " .. path)
