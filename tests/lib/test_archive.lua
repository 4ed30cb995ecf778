--- Packed runs: what goes in comes out, a changed byte is named, and what a hostile file
--- holds is not written.
local archive = require("nclua.archive")
local anonymous = require("nclua.anonymous")
local files = require("nclua.files")
local gzip = require("nclua.gzip")
local hash = require("nclua.hash")
local lfs = require("lfs")
local luaunit = require("luaunit")
local scratch = require("scratch")
local sqlite = require("nclua.sqlite")

local FILES = {
  { path = "a.txt", text = ("abc"):rep(1000) },
  { path = "deep/er/b.bin", text = "\0\1\255" },
  { path = "empty", text = "" },
}

TestArchive = {}

function TestArchive.test_there_and_back()
  local folder <close> = scratch.folder()
  local file, out = folder.path .. "/x.nclua", folder.path .. "/out"
  luaunit.assertTrue(archive.write(file, FILES))
  luaunit.assertEquals(select(3, archive.write(file, FILES)), "EEXIST")
  luaunit.assertEquals(archive.extract(file, out), #FILES)
  for _, each in ipairs(FILES) do
    luaunit.assertEquals(files.read(out .. "/" .. each.path), each.text, each.path)
  end
  luaunit.assertStrContains(files.read(out .. "/" .. archive.CHECKSUMS),
    hash.sha256("") .. "  empty\n")
  local none, problems = archive.extract(file, out)
  luaunit.assertNil(none)
  luaunit.assertStrContains(problems[1], "exists")
end

-- Statements on a good archive, and what is said of it.
local HOSTILE = {
  { "update sqlar set name = '../evil' where name = 'a.txt'", "leaves its folder" },
  { "update sqlar set name = 'x/../../evil' where name = 'a.txt'", "leaves its folder" },
  { "update sqlar set name = './a' where name = 'a.txt'", "leaves its folder" },
  { "update sqlar set name = 'a//b' where name = 'a.txt'", "leaves its folder" },
  { "update sqlar set name = '/tmp/evil' where name = 'a.txt'", "absolute" },
  { "update sqlar set name = '' where name = 'a.txt'", "not a file name" },
  { "update sqlar set name = x'2e2e' where name = 'a.txt'", "leaves its folder" },
  { "update sqlar set name = null where name = 'a.txt'", "not a file name" },
  { "update sqlar set name = 'a' || char(10) || 'b' where name = 'a.txt'", "control" },
  { "update sqlar set name = 'a\\b' where name = 'a.txt'", "backslash" },
  { "update sqlar set mode = 41471, sz = -1, data = '/etc/passwd' where name = 'a.txt'",
    '"a.txt": not a regular file' },
  { "update sqlar set mode = 16877 where name = 'a.txt'", "not a regular file" },
  { "update sqlar set mode = 'x' where name = 'a.txt'", "not a regular file" },
  { "update sqlar set sz = -1 where name = 'a.txt'", "not a size" },
  { "update sqlar set sz = 1 << 40 where name = 'a.txt'", "not a size" },
  { "update sqlar set sz = 1 << 30 where name = 'a.txt'", "damaged zlib data" },
  { "update sqlar set sz = sz - 1 where name = 'a.txt'", "damaged zlib data" },
  { "update sqlar set data = null where name = 'a.txt'", "no data" },
  { "update sqlar set data = x'000102' where name = 'deep/er/b.bin'",
    '"deep/er/b.bin": its content was changed' },
  { "delete from sqlar where name = 'empty'", '"empty": it is missing' },
  { "delete from checksum where name = 'empty'", '"empty": it has no checksum' },
  { "update checksum set sha256 = 'x' where name = 'empty'", '"empty": its content' },
  { "update pack set value = '99'", "format 99 is not known" },
  { "drop table checksum", "not a packed run" },
  { "alter table sqlar rename to other; create view sqlar as select * from other",
    "not a packed run" },
  { "create table t as select * from sqlar; drop table sqlar; alter table t rename to "
    .. "sqlar; insert into sqlar select * from sqlar where name = 'empty'",
    '"empty": it is there twice' },
}

function TestArchive.test_hostile()
  local folder <close> = scratch.folder()
  local out = folder.path .. "/out"
  for i, case in ipairs(HOSTILE) do
    local file = ("%s/%d.nclua"):format(folder.path, i)
    assert(archive.write(file, FILES))
    do
      local db <close> = assert(sqlite.open(file, { mode = "rw" }))
      assert(db:exec(case[1]))
    end
    local count, problems = archive.extract(file, out)
    luaunit.assertNil(count, case[1])
    luaunit.assertStrContains(table.concat(problems, "\n"), case[2], case[1])
    luaunit.assertNil(lfs.symlinkattributes(out), case[1])
    luaunit.assertNil(lfs.symlinkattributes(folder.path .. "/evil"), case[1])
    luaunit.assertNil(lfs.symlinkattributes("/tmp/evil"), case[1])
    os.remove(file)
  end
  luaunit.assertEquals(files.list(folder.path), {})
end

-- A file where another one needs a folder.
function TestArchive.test_one_in_the_way_of_another()
  local folder <close> = scratch.folder()
  local file = folder.path .. "/x.nclua"
  assert(archive.write(file, { { path = "a", text = "1" }, { path = "a/b", text = "2" } }))
  local count, problems = archive.extract(file, folder.path .. "/out")
  luaunit.assertNil(count)
  luaunit.assertStrContains(problems[1], "not a folder")
  luaunit.assertNil(lfs.attributes(folder.path .. "/out"))
end

-- Each byte of the file in turn: nothing crashes, and what comes out is what went in.
function TestArchive.test_every_damage()
  local folder <close> = scratch.folder()
  local file, bad = folder.path .. "/x.nclua", folder.path .. "/bad.nclua"
  assert(archive.write(file, FILES))
  local text = assert(files.read(file))
  local good, refused = 0, 0
  for at = 1, #text, 37 do
    assert(files.write(bad, text:sub(1, at - 1) .. string.char(text:byte(at) ~ 0x55)
      .. text:sub(at + 1)))
    local list = archive.read(bad)
    if list then
      good = good + 1 -- in a free part of a page, or a time
      luaunit.assertEquals(#list, #FILES)
      for i, each in ipairs(FILES) do luaunit.assertEquals(list[i].text, each.text) end
    else
      refused = refused + 1
    end
  end
  local counts = ("%d good, %d refused"):format(good, refused)
  luaunit.assertTrue(good > 0 and refused > 5, counts)
  for _, length in ipairs({ 0, 10, 100, 4096, #text - 1 }) do
    assert(files.write(bad, text:sub(1, length)))
    luaunit.assertNil((archive.read(bad)), "cut to " .. length)
  end
end

function TestArchive.test_deflate()
  for _, text in ipairs({ "", "a", ("x"):rep(100000), string.char(0, 255) }) do
    luaunit.assertEquals(gzip.inflate(gzip.deflate(text), #text), text)
  end
  for _, case in ipairs({ { "", 1 }, { "junk", 4 }, { gzip.deflate("abc"), 2 },
    { gzip.deflate("abc"), 4 }, { gzip.deflate("abc"), 1 << 30 } }) do
    local text, message, code = gzip.inflate(case[1], case[2])
    luaunit.assertNil(text)
    luaunit.assertStrContains(message, "damaged zlib data")
    luaunit.assertEquals(code, "EILSEQ")
  end
end

-- Text, and what is left of it.
local ANONYMOUS = {
  { "node17: ok, node17.lan, node170", "host1: ok, host1.lan, node170" },
  { "world_node17_12.log", "world_host1_12.log" },
  { "10.1.2.3 10.1.2.4 10.1.2.3", "192.0.2.1 192.0.2.2 192.0.2.1" },
  { "127.0.0.1 0.0.0.0 1.2.3 2.28.3 1.2.3.4.5 999.1.1.1", nil },
  { "fe80::1 and 2001:0:0:0:0:0:0:7", "2001:db8::3 and 2001:db8::4" },
  { "eth0:fe80::1%eth0<0>", "eth0:2001:db8::3%eth0<0>" },
  { "aa:bb:cc:dd:ee:ff", "00:00:5e:00:53:05" },
  { "0000:01:00.0 12:16:57 x::b.c std::string", nil },
}

function TestArchive.test_anonymous()
  local names = anonymous.new({ "node17", "", "localhost" })
  for _, case in ipairs(ANONYMOUS) do
    luaunit.assertEquals(names:text(case[1]), case[2] or case[1])
  end
end
