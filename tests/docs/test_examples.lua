--- What README.md and docs/tutorial.md tell to type, typed. Blocks of a document share one
--- folder, as for a reader: shell commands run there, Lua that requires modules is a
--- script, other Lua is typed at the prompt behind all that was typed there before. A block
--- behind a comment <!-- not run by tests: REASON --> is skipped, and the test says so.
local files = require("nclua.files")
local lfs = require("lfs")
local luaunit = require("luaunit")
local process = require("nclua.process")
local scratch = require("scratch")

local NCLUA = assert(os.getenv("NCLUA"), "NCLUA must name the program under test")

TestExamples = {}

local function blocks_of(text)
  local blocks, number, block, reason = {}, 0, nil, nil
  for line in text:gmatch("([^\n]*)\n") do
    number = number + 1
    local fence = line:match("^```(.*)$")
    if block and fence then
      blocks[#blocks + 1], block = block, nil
    elseif block then
      block.text = block.text .. line .. "\n"
    elseif fence then
      block = { line = number, language = fence, text = "", reason = reason }
    end
    reason = line:match("^<!%-%- not run by tests: (.-) %-%->$")
  end
  return blocks
end

-- RUN_ID in an example is the run that was just made.
local function with_run_id(text, folder)
  local runs = folder .. "/logs/interview_details"
  if not text:find("RUN_ID", 1, true) then return text end
  for name in lfs.dir(runs) do
    if name:sub(1, 1) ~= "." then return (text:gsub("RUN_ID", name)) end
  end
end

local Reader = {}
Reader.__index = Reader

function Reader:run(where, argv, input)
  local result = assert(process.run(argv, { cwd = self.folder, stdin = input,
    timeout_s = 200, env = { NCLUA_CPU_DEVICES = "4" } }))
  local said = ("%s: %s%s"):format(where, result.stdout, result.stderr)
  luaunit.assertEquals(result.exit_code, 0, said)
  return result
end

function Reader:sh(where, text)
  self:run(where, { "sh", "-euc", text })
end

-- A prompt goes on after an error, so that it shows on standard error only.
function Reader:lua(where, text)
  if text:find("require", 1, true) then
    assert(files.write(self.folder .. "/script.lua", text))
    self:run(where, { "build/nclua", "script.lua" })
  else
    self.typed = self.typed .. text
    local result = self:run(where, { "build/nclua", "-i" }, self.typed)
    luaunit.assertEquals(result.stderr, "", where)
  end
end

local function read(path)
  local folder <close> = scratch.folder()
  assert(files.make_folder(folder.path .. "/build"))
  assert(lfs.link(NCLUA, folder.path .. "/build/nclua", true))
  local reader, count = setmetatable({ folder = folder.path, typed = "" }, Reader), 0
  for _, block in ipairs(blocks_of(assert(files.read(path)))) do
    local where = ("%s:%d"):format(path, block.line)
    if block.reason then
      print(("skipped: %s: %s"):format(where, block.reason))
    else
      luaunit.assertNotNil(Reader[block.language],
        where .. ": neither sh nor lua, and no comment why it is not run")
      reader[block.language](reader, where, with_run_id(block.text, folder.path))
      count = count + 1
    end
  end
  return count
end

function TestExamples.test_readme()
  luaunit.assertEquals(read("README.md"), 2)
end

function TestExamples.test_tutorial()
  luaunit.assertTrue(read("docs/tutorial.md") >= 5)
end

-- What does not work must not pass.
function TestExamples.test_a_wrong_example_fails()
  for _, text in ipairs({ "```sh\nbuild/nclua none\ntrue\n```\n",
    "```lua\nw = wolrd()\n```\n", "```lua\nlocal csv = require('nclua.csvs')\n```\n",
    "```c\nint x;\n```\n" }) do
    local folder <close> = scratch.folder()
    local path = folder.path .. "/page.md"
    assert(files.write(path, text))
    luaunit.assertFalse(pcall(read, path), text)
  end
end

function TestExamples.test_the_test_command_is_the_one_of_ci()
  for _, block in ipairs(blocks_of(files.read("README.md"))) do
    local command = block.text:match("^([^\n]*ctest[^\n]*)\n$")
    if command then
      command = ('bash -c "%s"'):format(command)
      return luaunit.assertStrContains(files.read(".ci/run"), command)
    end
  end
  luaunit.fail("README.md has no command that runs the tests")
end
