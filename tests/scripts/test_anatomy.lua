--- nclua anatomy: every collective on 2 to 8 ranks moves what the textbook says.
local files = require("nclua.files")
local luaunit = require("luaunit")
local process = require("nclua.process")
local scratch = require("scratch")

local eq = luaunit.assertEquals
local NCLUA = assert(os.getenv("NCLUA"), "NCLUA must name the program under test")

local function anatomy(...)
  return process.run({ NCLUA, "anatomy", "--cycles", "2", ... }, {
    env = { NCLUA_BACKEND = "cpu" }, unset = { "NCCL_*" }, timeout_s = 60 })
end

local function check(...)
  local result = assert(anatomy(...))
  local text = result.stdout .. result.stderr
  eq(result.exit_code, 0, text)
  luaunit.assertNotStrContains(text, "DIFFERS")
  luaunit.assertStrContains(text, "OK ")
  return result.stdout
end

TestAnatomyScript = {}

function TestAnatomyScript.test_bytes_of_the_ring()
  for n = 2, 8 do
    local out = check("--ranks", n, "--algorithm", "ring", "--bytes", n * 640)
    local sent = ("rank %d sends 2(n-1)/n x S: %d, textbook"):format(n - 1,
      2 * (n - 1) * 640)
    luaunit.assertStrContains(out, sent)
    local _, levels = out:gsub("\n +%d+  [%dc]", "")
    eq(levels, 2 * (n - 1) + 1, "steps of one turn of the ring\n" .. out)
  end
end

function TestAnatomyScript.test_tree()
  for n = 2, 8 do check("--ranks", n, "--algorithm", "tree", "--bytes", "4K") end
end

function TestAnatomyScript.test_other_collectives()
  for _, name in ipairs({ "all_gather", "reduce_scatter", "broadcast", "reduce" }) do
    for _, n in ipairs({ 2, 5 }) do
      check("--ranks", n, "--collective", name, "--algorithm", "ring", "--bytes", "100K")
    end
  end
end

function TestAnatomyScript.test_pat()
  for n = 2, 8 do
    for _, name in ipairs({ "all_gather", "reduce_scatter" }) do
      check("--ranks", n, "--collective", name, "--algorithm", "pat", "--bytes", "10000")
    end
  end
end

function TestAnatomyScript.test_protocols()
  local wire = { LL = 12288, LL128 = 6912, Simple = 6144 }
  for protocol, bytes in pairs(wire) do
    local out = check("--algorithm", "ring", "--protocol", protocol)
    luaunit.assertStrContains(out, ("6144 %10d"):format(bytes))
  end
end

function TestAnatomyScript.test_channels()
  local out = check("--ranks", 4, "--algorithm", "ring", "--protocol", "Simple", "--bytes",
    "1M", "--channels", 2)
  luaunit.assertStrContains(out, "channel 1: ")
  check("--ranks", 5, "--algorithm", "tree", "--bytes", "1M", "--channels", 2)
end

function TestAnatomyScript.test_odd_sizes()
  for _, bytes in ipairs({ "4", "68", "1000", "1M" }) do
    check("--ranks", 3, "--algorithm", "ring", "--bytes", bytes)
  end
end

function TestAnatomyScript.test_straggler_and_picture()
  local folder <close> = scratch.folder()
  local path = folder.path .. "/anatomy.svg"
  local out = check("--ranks", 3, "--delay", "1:0:3000", "--svg", path)
  luaunit.assertStrContains(out, "▒▒▒▒")
  luaunit.assertStrMatches(out, ".*\n +1 .- 3000%.0\n.*")
  luaunit.assertStrContains(assert(files.read(path)), "url(#late)")
end

function TestAnatomyScript.test_wrong_use()
  for _, case in ipairs({ { 2, "--ranks", 1 }, { 2, "--algorithm", "round" },
    { 1, "--bytes", 3 }, { 1, "--delay", "soon" } }) do
    local result = assert(anatomy(table.unpack(case, 2)))
    eq(result.exit_code, case[1], result.stderr)
    luaunit.assertStrContains(result.stderr, "nclua")
  end
end

--- With GPUs it says where to go; the choice of backend needs none.
function TestAnatomyScript.test_on_gpus()
  local result = assert(process.run({ NCLUA, "--backend", "cuda", "anatomy" }))
  eq(result.exit_code, 1)
  luaunit.assertStrContains(result.stderr, "on the CPU backend only")
end
