--- What reads foreign text in Lua, given 5000 damaged fixtures: an answer or a message, in
--- bounded processor time and memory, never an error. NCLUA_FUZZ_SEED gives other damages.
local files = require("nclua.files")
local luaunit = require("luaunit")
local output = require("nclua.read.output")
local read = require("nclua.read")
local scratch = require("scratch")
local sqlite = require("nclua.sqlite")

local MUTATIONS, MOST_SECONDS, MOST_BYTES = 5000, 40, 128 << 20
local FOLDERS = { "nccl", "nccl_tests", "ranks", "read", "rules" }

local function trace_bytes()
  local folder <close> = scratch.folder()
  local path = folder.path .. "/trace.sqlite"
  local db = assert(sqlite.open(path))
  db:exec("create table StringIds (id integer, value text)")
  db:exec("insert into StringIds values (1, 'kernel')")
  db:exec("create table CUPTI_ACTIVITY_KIND_KERNEL (start integer, end integer,"
    .. " shortName integer, gridX integer, streamId integer)")
  db:exec("insert into CUPTI_ACTIVITY_KIND_KERNEL values (1, 2, 1, 4, 7), (3, 4, 1, 4, 7)")
  db:close()
  return assert(files.read(path))
end

local function inputs()
  local list = { trace_bytes() }
  for _, folder in ipairs(FOLDERS) do
    for _, name in ipairs(files.list("tests/fixtures/" .. folder)) do
      list[#list + 1] = assert(files.read("tests/fixtures/" .. folder .. "/" .. name))
    end
  end
  return list
end

-- A range of a text, not longer than `most`.
local function range(text, most)
  local first = math.random(1, #text + 1)
  return first, math.min(#text, first + math.random(0, most))
end

local WORDS = {
  "\0", "\r", "\n", "\xff\xfe", "-", "99999999999999999999", "-1", "nan", "inf", "1e999",
  "N/A", "|", "/", "[", "<", ">", "&", "{", "}", "\"", "%s", "NCCL INFO ", "Bytes -> ",
  "host:1:1 [0] NCCL INFO ", "size count type redop time algbw busbw error", " : ", "0x",
}

local function random_bytes()
  local bytes = {}
  for i = 1, math.random(1, 64) do bytes[i] = string.char(math.random(0, 255)) end
  return table.concat(bytes)
end

local mutations = {}

function mutations.overwrite(text)
  local at = math.random(1, #text + 1)
  return text:sub(1, at - 1) .. string.char(math.random(0, 255)) .. text:sub(at + 1)
end

function mutations.delete(text)
  local first, last = range(text, 200)
  return text:sub(1, first - 1) .. text:sub(last + 1)
end

function mutations.cut(text) return text:sub(1, math.random(0, #text)) end

function mutations.duplicate(text)
  local first, last = range(text, 400)
  return text:sub(1, last) .. text:sub(first)
end

function mutations.multiply(text)
  local first, last = range(text, 100)
  return text:sub(1, last) .. text:sub(first, last):rep(math.random(1, 2000))
    .. text:sub(last + 1)
end

function mutations.insert(text)
  local at = math.random(1, #text + 1)
  local what = math.random(2) == 1 and random_bytes() or WORDS[math.random(#WORDS)]
  return text:sub(1, at - 1) .. what .. text:sub(at)
end

function mutations.join_lines(text)
  local at = text:find("\n", math.random(1, #text + 1), true)
  return at and text:sub(1, at - 1) .. text:sub(at + 1) or text
end

function mutations.change_number(text)
  local first, last = text:find("%d+", math.random(1, #text + 1))
  if not first then return text end
  return text:sub(1, first - 1) .. WORDS[math.random(4, 10)] .. text:sub(last + 1)
end

function mutations.splice(text, other)
  local first, last = range(other, 2000)
  local at = math.random(1, #text + 1)
  return text:sub(1, at - 1) .. other:sub(first, last) .. text:sub(at)
end

local NAMES = {}
for name in pairs(mutations) do NAMES[#NAMES + 1] = name end
table.sort(NAMES)

local function mutate(list)
  local text, done = list[math.random(#list)], {}
  for i = 1, math.random(1, 4) do
    done[i] = NAMES[math.random(#NAMES)]
    text = mutations[done[i]](text, list[math.random(#list)])
  end
  return text, table.concat(done, ", ")
end

-- All that `nclua read` does with an input.
local function use(text)
  local doc, message = read.bytes(text, "mutation")
  if not doc then
    luaunit.assertIsString(message)
    return
  end
  output.json(doc)
  output.csv({ doc })
  output.text(doc, function(...) return select("#", ...) end)
end

TestMutations = {}

function TestMutations.test_damaged_fixtures()
  local seed = math.tointeger(os.getenv("NCLUA_FUZZ_SEED")) or 1
  math.randomseed(seed, 0)
  local list, began, most = inputs(), os.clock(), 0
  for i = 1, MUTATIONS do
    local text, done = mutate(list)
    local start = os.clock()
    local ok, why = xpcall(use, debug.traceback, text)
    most = math.max(most, os.clock() - start)
    if not ok then
      luaunit.fail(("seed %d, mutation %d (%s): %s"):format(seed, i, done, why))
    end
    if i % 500 == 0 then
      collectgarbage()
      luaunit.assertTrue(collectgarbage("count") * 1024 < MOST_BYTES, "memory grows")
    end
  end
  local seconds = os.clock() - began
  luaunit.assertTrue(seconds < MOST_SECONDS, ("%.1f s"):format(seconds))
  luaunit.assertTrue(most < 5, ("%.1f s for one"):format(most))
end

local TEXTS = {
  "", "# ", "size count type ", "8 2 float ", "# Rank 0 ", "nThread 1 nGpus ", "[1,",
  "(rank=", "\27[", " GPU0 ", "<system ", '{"version":1,"start_time":"', "Watchdog caught ",
  "collective,bytes,ranks,nodes,ops,registered,channels,outcome,algorithm,protocol,",
}
local MESSAGES = {
  "", "AllReduce |", "Algorithm |", "Pattern 4,", " 0 : ", "NCCL_X ", "Using network ",
  "comm 0x1 rank 0 ", "Trees ", "Channel 00/01 : ", "=== System : max", "+ [", "GPU/1 :",
  "1 coll channels,", "threadThresholds ", "Init timings rank 0 ", "TUNER/Plugin ",
  "AllReduce: 1 Bytes -> Algo ", "NCCL version ", "Enabled NCCL Func/Proto/Algo Matrix",
}

local function beginnings()
  local list = table.move(TEXTS, 1, #TEXTS, 1, {})
  for _, message in ipairs(MESSAGES) do
    list[#list + 1] = "host:1:1 [0] NCCL INFO " .. message
  end
  return list
end

-- No pattern may take quadratic time: lines of one character, over and over.
function TestMutations.test_long_lines()
  local began = os.clock()
  for _, beginning in ipairs(beginnings()) do
    for char in (" a1.:|/-,[]({\"<\t%=x"):gmatch(".") do
      local text = (beginning .. char:rep(60000) .. "!\n"):rep(3)
      local start = os.clock()
      use(text)
      local seconds = os.clock() - start
      luaunit.assertTrue(seconds < 3, ("%s%s: %.1f s"):format(beginning, char, seconds))
    end
  end
  luaunit.assertTrue(os.clock() - began < MOST_SECONDS)
end
