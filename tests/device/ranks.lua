--- Ranks on real GPUs: what the watchdog does to a skipped collective and to a killed
--- rank, and more ranks than GPUs. Prints what happened; exits 1 if something is wrong.
local cuda_of = function() return require("nclua.cuda") end
local process = require("nclua.process")
local ranks = require("nclua.ranks")
local world = require("nclua.world")

local failed = 0

local function expect(what, ok, details)
  print((ok and "ok    " or "FAIL  ") .. what .. (details and "  " .. details or ""))
  if not ok then failed = failed + 1 end
end

local function timed(options)
  local begin = world.now_us()
  local report, message, code, partial = ranks.run(options)
  return { report = report, message = message, code = code, partial = partial,
    seconds = (world.now_us() - begin) / 1e6 }
end

local function sum_is_right(rank, comm, stream)
  local cuda = cuda_of()
  local x <close> = assert(cuda.buffer("f32", 1000))
  x:fill(rank.index + 1, stream)
  comm:all_reduce(x, x, "sum", stream)
  stream:sync()
  return x:compare(rank.count * (rank.count + 1) // 2) == 0
end

-- Many calls; rank `odd` leaves out call number `skipped`, or dies there.
local function many_calls(odd, skipped, dies)
  return function(rank)
    local cuda = cuda_of()
    local comm <close> = rank:comm()
    local stream <close> = assert(cuda.stream())
    rank:check("sum", sum_is_right(rank, comm, stream))
    local x <close> = assert(cuda.buffer("f16", 4096))
    for i = 1, 50 do
      if rank.index == odd and i == skipped then
        if dies then os.execute("kill -9 $PPID") end
      else
        comm:all_reduce(x, x, "sum", stream)
      end
    end
    stream:sync()
    rank:barrier()
  end
end

local function gpu_processes()
  local got = process.run({ "nvidia-smi", "--query-compute-apps=pid",
    "--format=csv,noheader" })
  return got and select(2, got.stdout:gsub("%d+", "")) or 0
end

local devices, backend = world.devices()
print(("backend %s, %d devices"):format(backend, devices))

local good = timed({ n = devices, fn = many_calls(-1) })
expect("a good world", good.report, good.message or ("%.2f s"):format(good.seconds))
for _, check in ipairs(good.report and good.report.checks or {}) do
  expect("rank " .. check.rank .. ": " .. check.name, check.ok)
end

local skip = timed({ n = devices, fn = many_calls(1, 20), timeout_s = 3 })
expect("a skipped call ends at the timeout", skip.code == "timeout" and skip.seconds < 9,
  ("%.2f s\n%s"):format(skip.seconds, skip.message))
expect("and it is rank 1's", skip.partial and skip.partial.failure.rank == 1)

local kill = timed({ n = devices, fn = many_calls(1, 20, true) })
expect("a killed rank ends the world", kill.code == "rank_died" and kill.seconds < 8,
  ("%.2f s\n%s"):format(kill.seconds, kill.message))

local crowd = timed({ n = 2 * devices, oversubscribe = true, fn = function(rank)
  local comm <close> = rank:comm()
  local stream <close> = assert(cuda_of().stream())
  rank:check("sum", sum_is_right(rank, comm, stream), { device = rank.device })
end })
expect("twice as many ranks as devices", crowd.report and crowd.report.oversubscribed,
  crowd.message or ("%.2f s"):format(crowd.seconds))
for _, check in ipairs(crowd.report and crowd.report.checks or {}) do
  expect(("rank %d on device %d: sum"):format(check.rank, check.details.device), check.ok)
end

local left = gpu_processes()
expect("no process is left on a GPU", left == 0, left .. " left")
os.exit(failed == 0)
