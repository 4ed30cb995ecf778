--- Three programs with a race, and what makes them right.
---
--- Each runs as it comes and against the adversary (NCLUA_CPU_ADVERSARY), which does the
--- worst that CUDA and NCCL allow. How often a wrong one is right by luck depends on the
--- day; before the adversary it never is, and a right one always.
local command = require("nclua.command")
local cuda = require("nclua.cuda")
local options = require("nclua.options")
local ranks = require("nclua.ranks")
local source = require("nclua.source")

local OPTIONS = {
  { "runs", 5, "of each program", min = 1 },
  { "timeout", 2.0, "seconds until a program that hangs has failed" },
}

local COUNT = 1000

-- Two ranks add 1 and 2; `use` does something with the sum, and what z holds is checked.
local function summing(use)
  return function(rank)
    local comm <close> = rank:comm()
    local stream <close> = assert(cuda.stream())
    local other <close> = assert(cuda.stream())
    local done <close> = assert(cuda.event())
    local x <close> = assert(cuda.buffer("f32", COUNT)):fill(rank.index + 1)
    local y <close> = assert(cuda.buffer("f32", COUNT)):fill(0)
    local z <close> = assert(cuda.buffer("f32", COUNT)):fill(0)
    comm:all_reduce(x, y, "sum", stream)
    done:record(stream)
    use({ x = x, y = y, z = z, stream = stream, other = other, done = done })
    other:sync()
    stream:sync()
    rank:check("sum", z:compare(3) == 0)
  end
end

-- Two ranks send each other their index.
local function exchanging(use)
  return function(rank)
    local comm <close> = rank:comm()
    local stream <close> = assert(cuda.stream())
    local peer = 1 - rank.index
    local x <close> = assert(cuda.buffer("i32", COUNT)):fill(rank.index)
    local y <close> = assert(cuda.buffer("i32", COUNT)):fill(-1)
    use(function() comm:send(x, peer, stream) end,
      function() comm:recv(y, peer, stream) end)
    stream:sync()
    rank:check("exchange", y:compare(peer) == 0)
  end
end

local PROGRAMS = {
  {
    name = "reading before the wait",
    wrong = summing(function(p) p.z:copy_from(p.y, p.other) end),
    right = summing(function(p)
      p.other:wait(p.done)
      p.z:copy_from(p.y, p.other)
    end),
  },
  {
    name = "reusing a buffer",
    wrong = summing(function(p)
      p.x:fill(9, p.other)
      p.z:copy_from(p.y, p.stream)
    end),
    right = summing(function(p)
      p.other:wait(p.done)
      p.x:fill(9, p.other)
      p.z:copy_from(p.y, p.stream)
    end),
  },
  {
    name = "missing group",
    wrong = exchanging(function(send, recv)
      send()
      recv()
    end),
    right = exchanging(function(send, recv)
      require("nclua.nccl").group(function()
        send()
        recv()
      end)
    end),
  },
}

local function is_well(fn, adversary, opt)
  local report = ranks.run({ n = 2, fn = fn, timeout_s = opt.timeout, oversubscribe = true,
    env = { NCLUA_CPU_ADVERSARY = adversary } })
  if not report then return false end
  for _, check in ipairs(report.checks) do
    if not check.ok then return false end
  end
  return true
end

local function count_well(fn, adversary, opt)
  local well = 0
  for _ = 1, opt.runs do
    if is_well(fn, adversary, opt) then well = well + 1 end
  end
  return well
end

local opt = command.options("nclua races", options.header(source.of(1).text), OPTIONS, arg)
if cuda.backend() ~= "cpu" then
  io.stderr:write("nclua races: the adversary is in the CPU backend only\n")
  os.exit(1)
end
local ROW = "%-24s %-7s %12s %12s"
local is_as_said = true
print(("correct in so many of %d runs; backend=cpu"):format(opt.runs))
print(ROW:format("program", "version", "as it comes", "adversary"))
for _, program in ipairs(PROGRAMS) do
  for _, version in ipairs({ "wrong", "right" }) do
    local lucky = count_well(program[version], false, opt)
    local tried = count_well(program[version], "1", opt)
    print(ROW:format(program.name, version, lucky, tried))
    is_as_said = is_as_said and tried == (version == "right" and opt.runs or 0)
  end
end
if not is_as_said then
  io.stderr:write("nclua races: a wrong program passed the adversary, or a right one not\n")
  os.exit(1)
end
