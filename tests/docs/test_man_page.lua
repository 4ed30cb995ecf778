--- nclua(1) has every option, chapter, command and variable that there is, and no other.
local files = require("nclua.files")
local luaunit = require("luaunit")
local process = require("nclua.process")
local programs = require("nclua.programs")
local sources = require("nclua.sources")

local PAGE = assert(files.read("docs/nclua.1"))
local SHARED = { "Options of chapters that measure", "Options of chapters that sweep" }

TestManPage = {}

local function help(...)
  local argv = { os.getenv("NCLUA"), ... }
  argv[#argv + 1] = "--help"
  local result = assert(process.run(argv, { timeout_s = 60 }))
  luaunit.assertEquals(result.exit_code, 0, result.stderr)
  return result.stdout
end

local function part(kind, name)
  local mark = ("\n.%s %s\n"):format(kind, name)
  local _, last = PAGE:find(mark, 1, true)
  luaunit.assertNotNil(last, "docs/nclua.1 has no part '" .. name .. "'")
  return PAGE:sub(last, PAGE:find("\n%.S[hs] ", last) or -1)
end

-- "-x" and "--long", from ".It Fl x , Fl -long Ar value".
local function options_of(text, into)
  for line in text:gmatch("\n%.It ([^\n]*)") do
    for flag in line:gmatch("Fl (%S+)") do into["-" .. flag] = true end
  end
  return into
end

local function options_of_help(text)
  local found = {}
  for line in text:match("\nOptions:\n(.*)$"):gmatch("[^\n]+") do
    for flag in (line:match("^%s+%-%-?%a.*$") or ""):gmatch("%f[%S]%-%-?%a[%w_-]*") do
      if line:find("^%s*" .. flag:gsub("%-", "%%-")) then found[flag] = true end
    end
  end
  found["-h"] = nil
  return found
end

local function check_part(name)
  local own = options_of(part("Ss", name), {})
  local shared = {}
  for _, title in ipairs(SHARED) do options_of(part("Ss", title), shared) end
  local there = options_of_help(help(name))
  for flag in pairs(there) do
    luaunit.assertTrue(own[flag] or shared[flag] or false,
      ("docs/nclua.1: %s has no %s"):format(name, flag))
  end
  for flag in pairs(own) do
    luaunit.assertTrue(help(name):find(flag, 1, true) ~= nil,
      ("docs/nclua.1: %s: there is no %s"):format(name, flag))
  end
end

function TestManPage.test_chapters_and_commands()
  for _, list in ipairs({ sources.chapters(), sources.commands() }) do
    luaunit.assertTrue(#list > 4)
    for _, name in ipairs(list) do check_part(name) end
  end
end

function TestManPage.test_options_of_the_program()
  local there, page = {}, options_of(part("Sh", "DESCRIPTION"), {})
  for line in help():gmatch("[^\n]+") do
    for flag in (line:match("^  (%-.-)  ") or ""):gmatch("%-%-?%a[%w-]*") do
      there[flag] = true
    end
  end
  luaunit.assertTrue(there["--backend"] and there["-e"])
  page["-"], page["--"], page["-Fl"] = nil, nil, nil
  luaunit.assertEquals(page, there)
end

local ROWS = { "host", "bindings", "lib", "scripts", "plugins" }

function TestManPage.test_variables()
  local there, page = {}, {}
  for _, row in ipairs(ROWS) do
    for _, name in ipairs(files.list(row)) do
      local text = name:find("%.[chl]u?a?$") and files.read(row .. "/" .. name) or ""
      for variable in text:gmatch('"(NCLUA_[A-Z_]+)"') do there[variable] = true end
      for variable in text:gmatch("[%s.](NCLUA_[A-Z_]+) = ") do there[variable] = true end
    end
  end
  luaunit.assertTrue(there.NCLUA_BACKEND)
  for line in part("Sh", "ENVIRONMENT"):gmatch("\n%.It Ev ([^\n]*)") do
    for variable in line:gmatch("NCLUA_[A-Z_]+") do page[variable] = true end
  end
  luaunit.assertEquals(page, there)
end

function TestManPage.test_mandoc_has_nothing_to_say()
  if not programs.find("mandoc") then luaunit.skip("mandoc is not installed") end
  local result = assert(process.run({ "mandoc", "-T", "lint", "docs/nclua.1" },
    { timeout_s = 30 }))
  for line in result.stdout:gmatch("[^\n]+") do -- other pages may not be on this machine
    luaunit.assertNotNil(line:find("referenced manual not found", 1, true), line)
  end
end
