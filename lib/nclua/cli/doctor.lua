--- nclua doctor [--json]: what was found on this machine and what is missing.
local cjson = require("cjson")
local command = require("nclua.command")
local inventory = require("nclua.inventory")
local programs = require("nclua.programs")
local sandbox = require("nclua.sandbox")

local options = command.options("nclua doctor",
  "What nclua found on this machine, and what is missing.",
  { { "json", false, "print one JSON object" } }, arg)

-- How a launcher tells a process its place; the first that is set counts.
local LAUNCHERS = {
  { "torchrun", "RANK", "WORLD_SIZE" },
  { "Open MPI", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE" },
  { "PMIx", "PMIX_RANK", "PMIX_SIZE" },
  { "PMI", "PMI_RANK", "PMI_SIZE" },
  { "Slurm", "SLURM_PROCID", "SLURM_NTASKS" },
}

local PROGRAMS = {
  { "nvidia-smi", "artifacts: driver, topology" },
  { "nsys", "kernel profiles; without it nclua's own tracer is used" },
  { "all_reduce_perf", "nccl-tests, an independent control of timings" },
  { "mpirun", "worlds of several hosts" },
  { "srun", "worlds of several hosts" },
  { "ibv_devinfo", "artifacts: InfiniBand" },
}

local function cpu_model()
  for line in io.lines("/proc/cpuinfo") do
    local model = line:match("^model name%s*:%s*(.*)")
    if model then return model end
  end
  return "unknown"
end

local function launcher()
  for _, row in ipairs(LAUNCHERS) do
    local rank = os.getenv(row[2])
    if rank then return { name = row[1], rank = rank, size = os.getenv(row[3]) } end
  end
end

local function find_programs()
  local found = {}
  for _, row in ipairs(PROGRAMS) do
    found[#found + 1] = { name = row[1], use = row[2], path = programs.find(row[1]) }
  end
  return found
end

local function examine()
  local backend, devices = inventory.backend()
  local gpus, gpu_message = inventory.gpus()
  return {
    nclua = inventory.version(),
    backend = backend,
    devices = devices,
    cpu = cpu_model(),
    gpus = gpus or {},
    gpu_message = gpu_message,
    driver_version = gpus and gpus.driver_version,
    driver = inventory.libraries("driver"),
    nccl = inventory.libraries("nccl"),
    nvrtc = inventory.libraries("nvrtc"),
    cupti = inventory.libraries("cupti"),
    programs = find_programs(),
    launcher = launcher(),
    sandbox = sandbox.status(),
  }
end

local function say(mark, what, text) print(("%s %-16s %s"):format(mark, what, text)) end

local function say_libraries(title, list, use)
  if #list == 0 then say("-", title, "not found: " .. use) end
  for i, library in ipairs(list) do
    say(i == 1 and "+" or " ", i == 1 and title or "",
      ("%s %s"):format(library.version or "?", library.path))
  end
end

local function say_gpus(facts)
  if #facts.gpus == 0 then say("-", "GPUs", facts.gpu_message or "none") end
  for i, gpu in ipairs(facts.gpus) do
    say("+", "GPU " .. i - 1, ("%s, %.0f GiB, compute capability %s, %s"):format(gpu.name,
      gpu.memory_bytes / (1 << 30), gpu.compute_capability, gpu.pci_bus_id))
  end
  if facts.driver_version then
    say("+", "driver", ("CUDA %d.%d"):format(facts.driver_version // 1000,
      facts.driver_version % 1000 // 10))
  end
end

-- What guards --sandbox: the kernel as far as it can, the Lua state in any case.
local function say_sandbox(status)
  local landlock = status.landlock > 0 and "Landlock " .. status.landlock
    or "no Landlock (files are guarded by the Lua state alone)"
  say(status.landlock > 0 and status.seccomp and "+" or "-", "sandbox",
    landlock .. (status.seccomp and ", seccomp" or ", no seccomp"))
end

local function print_facts(facts)
  say("+", "nclua", facts.nclua)
  say("+", "backend", ("%s, %d devices"):format(facts.backend, facts.devices))
  say("+", "CPU", facts.cpu)
  say_gpus(facts)
  say_libraries("driver library", facts.driver, "libcuda.so.1, for GPUs")
  say_libraries("NCCL", facts.nccl, "libnccl.so.2, for GPUs (--nccl-lib PATH)")
  say_libraries("NVRTC", facts.nvrtc, "libnvrtc.so, for kernels on GPUs")
  say_libraries("CUPTI", facts.cupti, "libcupti.so, for traces on GPUs")
  for _, program in ipairs(facts.programs) do
    say(program.path and "+" or "-", program.name, program.path
      or ("not on the PATH: " .. program.use))
  end
  say_sandbox(facts.sandbox)
  local world = facts.launcher
  say(world and "+" or "-", "launcher", world
    and ("%s: rank %s of %s"):format(world.name, world.rank, world.size or "?")
    or "none: ranks.run forks the ranks itself")
end

-- cjson writes an empty table as an object: an empty list is null instead.
local function print_json(facts)
  facts.gpus.driver_version = nil
  for _, key in ipairs({ "gpus", "driver", "nccl", "nvrtc", "cupti" }) do
    if #facts[key] == 0 then facts[key] = cjson.null end
  end
  print(cjson.encode(facts))
end

if options.json then
  print_json(examine())
else
  print_facts(examine())
end
