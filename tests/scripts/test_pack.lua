--- A run packed, unpacked elsewhere and verified: its tables are made again from the raw
--- rows, bit for bit, and whatever was changed is named.
local files = require("nclua.files")
local lfs = require("lfs")
local luaunit = require("luaunit")
local process = require("nclua.process")
local scratch = require("scratch")
local sqlite = require("nclua.sqlite")

local NCLUA = assert(os.getenv("NCLUA"), "NCLUA must name the program under test")

-- The leak checker stops its process by ptrace, which a sandbox refuses.
local function nclua(folder, ...)
  local env = ... == "--sandbox" and { ASAN_OPTIONS = "detect_leaks=0" } or nil
  return assert(process.run({ NCLUA, ... }, { cwd = folder, env = env, timeout_s = 200 }))
end

local function must(folder, ...)
  local result = nclua(folder, ...)
  luaunit.assertEquals(result.exit_code, 0, result.stdout .. result.stderr)
  return result.stdout
end

local function refused(folder, pattern, ...)
  local result = nclua(folder, ...)
  luaunit.assertEquals(result.exit_code, 1, result.stdout .. result.stderr)
  luaunit.assertNotNil(result.stderr:find(pattern), result.stderr)
end

local RUN = "logs/interview_details/r"

local function interview(folder)
  must(folder, "interview", "--run-id", "r", "--cycles", "2", "--warmups", "0", "--largest",
    "64K", "--ranks", "2")
end

local function change(path, at)
  local text = assert(files.read(path))
  assert(files.write(path, text:sub(1, at - 1) .. string.char(text:byte(at) ~ 1)
    .. text:sub(at + 1)))
end

local function check_changes(top)
  local raw = "raw/results/world2_full/rank0_decode.csv"
  for _, path in ipairs({ raw, "decode_summary.csv", "manifest.txt", "summary.csv",
    "scripts/scripts/interview.lua" }) do
    must(top, "unpack", "r.nclua", "changed")
    local size = lfs.attributes(top .. "/changed/" .. path, "size")
    change(top .. "/changed/" .. path, size - 3)
    local name = path:gsub("%p", "%%%0")
    refused(top, name .. ": its content was changed", "verify", "changed")
    must(top, "-e", "require('nclua.archive').remove('changed')")
  end
  must(top, "unpack", "r.nclua", "changed")
  os.remove(top .. "/changed/" .. raw)
  assert(files.write(top .. "/changed/new", ""))
  refused(top, raw:gsub("%p", "%%%0") .. ": it is missing", "verify", "changed")
  refused(top, "new: it was added", "verify", "changed")
end

-- Not packed: the tables themselves must tell.
local function check_tables(top)
  local run = top .. "/" .. RUN
  local text = assert(files.read(run .. "/summary.csv"))
  change(run .. "/summary.csv", text:find("\n", 1, true) + 1)
  refused(top, "summary%.csv: line 2 is not what the raw rows give", "verify", RUN)
  assert(files.write(run .. "/summary.csv", text))
  local db <close> = assert(sqlite.open(run .. "/results.db", { mode = "rw" }))
  assert(db:exec("update measurement set value = value + 1 where rowid = 5"))
  refused(top, "results%.db: table measurement: row 5 is not what the raw rows give",
    "verify", RUN)
end

local function check_anonymous(top)
  local host = assert(files.read("/proc/sys/kernel/hostname")):match("%S+")
  must(top, "pack", RUN, "-o", "anonymous.nclua", "--anonymize")
  must(top, "unpack", "anonymous.nclua", "anonymous")
  luaunit.assertNotNil(must(top, "verify", "anonymous"):find(" 0 problems", 1, true))
  local word = "%f[%w]" .. host:gsub("%W", "%%%0") .. "%f[^%w]"
  for _, path in ipairs(files.list(top .. "/anonymous")) do
    luaunit.assertNil(path:find(word), path)
    if not path:find("^scripts/") then
      luaunit.assertNil(files.read(top .. "/anonymous/" .. path):find(word), path)
    end
  end
  local manifest = files.read(top .. "/anonymous/manifest.txt")
  luaunit.assertStrContains(manifest, "hostname=host1\n")
end

TestPack = {}

function TestPack.test_a_run()
  local folder <close> = scratch.folder()
  local top = folder.path
  interview(top)
  must(top, "pack", RUN, "-o", "r.nclua")
  must(top, "unpack", "r.nclua", "elsewhere")
  for _, path in ipairs(files.list(top .. "/" .. RUN)) do
    luaunit.assertEquals(files.read(top .. "/elsewhere/" .. path),
      files.read(top .. "/" .. RUN .. "/" .. path), path)
  end
  for _, what in ipairs({ "r.nclua", "elsewhere", RUN }) do
    local count = must(top, "verify", what):match("(%d+) tables made again .* 0 problems")
    luaunit.assertTrue(tonumber(count) >= 9, what)
  end
  must(top, "--sandbox", "verify", "r.nclua")
  check_changes(top)
  check_anonymous(top)
  check_tables(top)
end

function TestPack.test_a_changed_byte_in_the_file()
  local folder <close> = scratch.folder()
  local top = folder.path
  interview(top)
  must(top, "pack", RUN .. "/", "-o", "r.nclua")
  do
    local db <close> = assert(sqlite.open(top .. "/r.nclua", { mode = "rw" }))
    assert(db:exec("update sqlar set data = x'00' where name = 'summary.md'"))
  end
  refused(top, '"summary.md": ', "verify", "r.nclua")
  refused(top, '"summary.md": ', "unpack", "r.nclua", "out")
  luaunit.assertNil(lfs.attributes(top .. "/out"))
end

-- A chapter that nclua does not have comes along, but is run only if its user says so.
function TestPack.test_a_chapter_of_ones_own()
  local folder <close> = scratch.folder()
  local top = folder.path
  must(top, "new", "my.lua")
  must(top, "my.lua", "--run-id", "r")
  local run = must(top, "-e", "for d in require('lfs').dir('logs') do "
    .. "if d:find('%w') then io.write('logs/', d, '/r') end end")
  must(top, "pack", run, "-o", "r.nclua")
  os.remove(top .. "/my.lua")
  must(top, "unpack", "r.nclua", "out")
  refused(top, "no table was made again: no chapter my", "verify", "out")
  luaunit.assertNotNil(must(top, "--sandbox", "verify", "out", "--script",
    "out/scripts/my.lua"):find("[1-9]%d* tables made again .* 0 problems"))
end

function TestPack.test_what_is_not_packed()
  local folder <close> = scratch.folder()
  local top = folder.path
  refused(top, "manifest%.txt", "pack", ".")
  refused(top, "missing argument", "pack")
  assert(files.write(top .. "/manifest.txt", "run_id=x\ncommands:\n"))
  assert(lfs.link("/etc/hostname", top .. "/link", true))
  refused(top, "link is a link: it is not packed", "pack", ".", "-o", "../x.nclua")
  refused(top, "manifest%.txt", "verify", "/usr")
  refused(top, "no%-such", "verify", "no-such")
end
