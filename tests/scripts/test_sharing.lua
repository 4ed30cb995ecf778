--- Reading, copying and beginning chapters: nclua chapters, new and export; needs.
local files = require("nclua.files")
local luaunit = require("luaunit")
local process = require("nclua.process")
local scratch = require("scratch")

local NCLUA = assert(os.getenv("NCLUA"), "NCLUA must name the program under test")

local function run(args, cwd)
  return assert(process.run({ NCLUA, table.unpack(args) }, { timeout_s = 100, cwd = cwd }))
end

TestSharing = {}

function TestSharing.test_chapters()
  local result = run({ "chapters" })
  luaunit.assertEquals(result.exit_code, 0, result.stderr)
  luaunit.assertStrContains(result.stdout, "interview    The interview labs: what a ")
  for line in result.stdout:gmatch("(.-)\n") do luaunit.assertTrue(#line < 200, line) end
end

function TestSharing.test_a_new_chapter_runs_at_once()
  local folder <close> = scratch.folder()
  local made = run({ "new", "my.lua" }, folder.path)
  luaunit.assertEquals(made.exit_code, 0, made.stderr)
  local result = run({ "my.lua", "--cycles", "2", "--largest", "16K", "--run-id", "r" },
    folder.path)
  luaunit.assertEquals(result.exit_code, 0, result.stderr)
  luaunit.assertStrContains(result.stdout, "| 16384 | ")
  luaunit.assertTrue(files.exists(folder.path .. "/logs/my/r/results.db"))
  local again = run({ "new", "my.lua" }, folder.path)
  luaunit.assertEquals(again.exit_code, 1)
  luaunit.assertEquals(again.stderr, "nclua new: 'my.lua' exists already\n")
  luaunit.assertEquals(run({ "new", "my.txt" }, folder.path).exit_code, 1)
end

function TestSharing.test_the_editor_is_told_where_the_annotations_are()
  local folder <close> = scratch.folder()
  luaunit.assertEquals(run({ "new", "a/my.lua" }, folder.path).exit_code, 0)
  local text = assert(files.read(folder.path .. "/a/.luarc.json"))
  local library = require("cjson").decode(text)["workspace.library"][1]
  if not library:find("^/") then library = folder.path .. "/a/" .. library end
  luaunit.assertTrue(files.exists(library .. "/meta/nccl.lua"), library)
  assert(files.write(folder.path .. "/a/.luarc.json", "{}"))
  luaunit.assertEquals(run({ "new", "a/other.lua" }, folder.path).exit_code, 0)
  luaunit.assertEquals(files.read(folder.path .. "/a/.luarc.json"), "{}")
end

function TestSharing.test_export_of_one_file()
  local result = run({ "export", "protocol" })
  luaunit.assertEquals(result.stdout, files.read("scripts/protocol.lua"))
  local more = run({ "export", "interview" })
  luaunit.assertEquals(more.stdout, files.read("scripts/interview.lua"))
  luaunit.assertStrContains(more.stderr, "interview/decode.lua")
end

function TestSharing.test_an_exported_chapter_runs_as_it_was_edited()
  local folder <close> = scratch.folder()
  local result = run({ "export", "interview", folder.path .. "/x" })
  luaunit.assertEquals(result.exit_code, 0, result.stderr)
  luaunit.assertEquals(files.read(folder.path .. "/x/interview/numerics.lua"),
    files.read("scripts/interview/numerics.lua"))
  assert(files.write(folder.path .. "/x/interview/async.lua", "error('edited', 0)"))
  local edited = run({ folder.path .. "/x/interview.lua", "--help" })
  luaunit.assertStrContains(edited.stderr, "edited")
  luaunit.assertEquals(run({ "export", "interview", folder.path .. "/x" }).exit_code, 1)
end

function TestSharing.test_export_of_stubs()
  local folder <close> = scratch.folder()
  luaunit.assertEquals(run({ "export", "--stubs", folder.path }).exit_code, 0)
  luaunit.assertEquals(files.read(folder.path .. "/meta/cuda.lua"),
    files.read("lib/meta/cuda.lua"))
  luaunit.assertTrue(files.exists(folder.path .. "/nclua/chapter.lua"))
end

-- A script, and what is said if it does not run.
local NEEDS = {
  { "--- needs: nclua >= 0.1\nprint('ran')" },
  { "#!/usr/bin/nclua\n-- needs: nclua >= 0.1.0\nprint('ran')" },
  { "--- needs: nclua >= 99.1\nthis is no Lua", "needs nclua 99.1 or newer; this is " },
  { "--- needs: nclua >= soon\n", "needs nclua 'soon', which is no version" },
  { "print('ran')\n--- needs: nclua >= 99" },
  { "require('nclua.chapter').new({ name = 'x', needs = '99', sections = {} })",
    "x: needs nclua 99 or newer" },
}

function TestSharing.test_needs()
  local folder <close> = scratch.folder()
  for _, case in ipairs(NEEDS) do
    local path = folder.path .. "/a.lua"
    assert(files.write(path, case[1]))
    local result = run({ path })
    luaunit.assertEquals(result.exit_code, case[2] and 1 or 0, case[1] .. result.stderr)
    luaunit.assertStrContains(result.stderr, case[2] or "")
    if not case[2] then luaunit.assertEquals(result.stdout, "ran\n", case[1]) end
  end
end

function TestSharing.test_misspelt_names()
  local result = run({ "intervew" })
  luaunit.assertEquals(result.exit_code, 1)
  luaunit.assertEquals(result.stderr, "nclua: cannot open 'intervew': no such file, "
    .. "chapter or command (nearest: interview; see nclua chapters)\n")
  luaunit.assertStrContains(run({ "qqqqqqq" }).stderr, "command (see nclua chapters)\n")
  luaunit.assertStrContains(run({ "export", "protocl" }).stderr, "the nearest is protocol")
end
