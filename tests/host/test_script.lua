--- Modules beside a script: found before those of the binary, but not instead of nclua's.
local files = require("nclua.files")
local luaunit = require("luaunit")
local process = require("nclua.process")
local scratch = require("scratch")

local NCLUA = assert(os.getenv("NCLUA"), "NCLUA must name the program under test")

local function run(folder, script, modules, cwd)
  for name, text in pairs(modules) do
    local path = folder .. "/" .. name:gsub("%.", "/") .. ".lua"
    assert(files.make_folder(files.folder(path)))
    assert(files.write(path, text))
  end
  assert(files.write(folder .. "/script.lua", script))
  return assert(process.run({ NCLUA, cwd and "script.lua" or folder .. "/script.lua" },
    { cwd = cwd }))
end

TestScript = {}

function TestScript.test_an_edited_section_is_the_one_that_runs()
  local folder <close> = scratch.folder()
  for _, cwd in ipairs({ false, folder.path }) do
    local result = run(folder.path, "print(require('interview.decode'), ...)",
      { ["interview.decode"] = "return 'edited, ' .. select(2, ...)" }, cwd or nil)
    local where = cwd and "." or folder.path
    luaunit.assertEquals(result.stdout, "edited, " .. where .. "/interview/decode.lua\n",
      result.stderr)
  end
end

function TestScript.test_nclua_itself_cannot_be_replaced()
  local folder <close> = scratch.folder()
  local result = run(folder.path, "print(type(require('nclua.csv')))",
    { ["nclua.csv"] = "return 'shadow'" })
  luaunit.assertEquals(result.stdout, "table\n", result.stderr)
end

function TestScript.test_an_error_in_a_module_names_its_file()
  local folder <close> = scratch.folder()
  local result = run(folder.path, "require('broken')", { broken = "local =" })
  luaunit.assertEquals(result.exit_code, 1)
  luaunit.assertStrContains(result.stderr, folder.path .. "/broken.lua:1:")
end

function TestScript.test_bytecode_is_refused()
  local folder <close> = scratch.folder()
  local result = run(folder.path, "require('binary')",
    { binary = string.dump(load("return 1")) })
  luaunit.assertEquals(result.exit_code, 1)
  luaunit.assertStrContains(result.stderr, "attempt to load a binary chunk")
end
