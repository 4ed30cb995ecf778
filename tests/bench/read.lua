--- Reading a large NCCL log: nclua tests/bench/read.lua [MiB, default 1024]
--- Makes a log of all line kinds in a temporary folder, then reads it with `nclua read`
--- and, where there is python3, with a small reader of only table and selection lines, turn
--- by turn. The nclua that runs this is the one that is measured.
local process = require("nclua.process")
local scratch = dofile("tests/scratch.lua")

local MIB = math.tointeger(arg[1] or 1024)
local ROUNDS = 3
local NCLUA = os.getenv("NCLUA") or arg[-1]

local PYTHON = [[
import re, sys
selection = re.compile(r'(\w+): (\d+) Bytes -> Algo (\S+) proto (\S+) '
                       r'channel\{Lo\.\.Hi\}=\{(\d+)\.\.(\d+)\}')
row = re.compile(r'(Broadcast|Reduce|AllGather|ReduceScatter|AllReduce) \|(.*)')
pair = re.compile(r'([0-9.]+)/\s*([0-9.]+)')
chosen, table = {}, {}
for line in open(sys.argv[1], errors='replace'):
    m = selection.search(line)
    if m:
        chosen[m.groups()] = chosen.get(m.groups(), 0) + 1
        continue
    m = row.search(line)
    if m:
        table.setdefault(m.group(1), []).append(pair.findall(m.group(2)))
print(len(chosen), sum(map(len, table.values())))
]]

local function fixture(name)
  local file <close> = assert(io.open("tests/fixtures/nccl/" .. name, "rb"))
  return file:read("a")
end

-- What a communicator prints when it begins: all kinds of rare lines, with other pointers
-- and ids each time.
local function beginning(number)
  local text = fixture("2.22-numeric-selections.log") .. fixture("2.30-forms.log")
  return (text:gsub("0xabcdef01", ("0x%x"):format(number)):gsub("0x5501",
    ("0x55%06x"):format(number)))
end

local NAMES = { "AllReduce", "AllGather", "ReduceScatter", "Broadcast" }
local OPERATION = "node%d:%d:%d [%d] NCCL INFO %s: opCount %x sendbuff 0x7f%010x recvbuff"
  .. " 0x7f%010x count %d datatype 7 op 0 root 0 comm 0x55%06x [nranks=8] stream 0x55aa\n"
local SELECTION = "node%d:%d:%d [%d] NCCL INFO %s: %d Bytes -> Algo %s proto %s"
  .. " channel{Lo..Hi}={0..%d}\n"
local CONNECTION = "node%d:%d:%d [%d] NCCL INFO Channel %02d/0 : %d[%d] -> %d[%d] via"
  .. " P2P/CUMEM/read\n"
local RING = "node%d:%d:%d [%d] NCCL INFO Ring %02d : %d -> %d -> %d\n"
local OTHER = "node%d:%d:%d [%d] NCCL INFO New proxy send connection %d from local rank %d,"
  .. " transport 2\n"

local random = math.random

local function speaker()
  local rank = random(0, 7)
  return rank // 4, 1000 + rank, 2000 + rank, rank % 4
end

-- What it prints while it works.
local function working(number, lines)
  for i = 1, 400 do
    local node, pid, tid, device = speaker()
    local name, bytes = NAMES[random(4)], 1 << random(2, 30)
    lines[#lines + 1] = OPERATION:format(node, pid, tid, device, name, i, random(1 << 39),
      random(1 << 39), bytes // 4, number)
    local algorithm = random(2) == 1 and "RING" or "TREE"
    local protocol = bytes < 65536 and "LL" or "SIMPLE"
    lines[#lines + 1] = SELECTION:format(node, pid, tid, device, name, bytes, algorithm,
      protocol, random(0, 23))
    if i % 4 == 0 then
      local from = random(0, 7)
      lines[#lines + 1] = CONNECTION:format(node, pid, tid, device, i % 24, from, device,
        (from + 1) % 8, (device + 1) % 4)
      lines[#lines + 1] = RING:format(node, pid, tid, device, i % 24, from, (from + 1) % 8,
        (from + 2) % 8)
      lines[#lines + 1] = OTHER:format(node, pid, tid, device, i, device)
    end
  end
end

local function make(path)
  local file <close> = assert(io.open(path, "wb"))
  local number = 0
  math.randomseed(1)
  while file:seek() < MIB << 20 do
    number = number + 1
    local lines = { beginning(number) }
    working(number, lines)
    file:write(table.concat(lines))
  end
  return file:seek()
end

local function measure(argv)
  local result = assert(process.run(argv, { stdout = "null", stderr = "capture" }))
  return result.wall_us / 1e6, (result.user_us + result.sys_us) / 1e6,
    result.max_rss_bytes / (1 << 20)
end

local function has_python()
  local result = process.run({ "python3", "--version" })
  return result and result.ok
end

local folder <close> = scratch.folder()
local path, script = folder.path .. "/nccl.log", folder.path .. "/reader.py"
local bytes = make(path)
local file = assert(io.open(script, "w"))
file:write(PYTHON)
file:close()

local readers = { { "nclua read", { NCLUA, "read", "--json", path } } }
if has_python() then readers[2] = { "python3 re", { "python3", script, path } } end
print(("%.0f MiB, all line kinds, %d rounds"):format(bytes / (1 << 20), ROUNDS))
print("reader       wall s   cpu s   MB/s of cpu time   peak MiB")
for _ = 1, ROUNDS do
  for _, reader in ipairs(readers) do
    local wall, cpu, peak = measure(reader[2])
    print(("%-11s %7.2f %7.2f %18.0f %10.0f"):format(reader[1], wall, cpu,
      bytes / 1e6 / cpu, peak))
  end
end
