--- nclua.gzip: plain and compressed files, damage, handles.
local gzip = require("nclua.gzip")
local luaunit = require("luaunit")
local process = require("nclua.process")
local scratch = require("scratch")

local TEXT = ("a line of text\n"):rep(5000)

local function write(path, text)
  local file <close> = assert(io.open(path, "wb"))
  file:write(text)
end

local function read_all(path)
  local reader <close> = assert(gzip.open(path))
  local pieces = {}
  while true do
    local piece, message, code = reader:read(10000)
    if not piece then return nil, message, code end
    if piece == "" then return table.concat(pieces) end
    pieces[#pieces + 1] = piece
  end
end

local function compressed(folder)
  write(folder.path .. "/t", TEXT)
  local result = assert(process.run({ "gzip", "-c", folder.path .. "/t" }))
  luaunit.assertTrue(result.ok)
  return result.stdout
end

TestGzip = {}

function TestGzip.test_plain_and_compressed()
  local folder <close> = scratch.folder()
  local path = folder.path .. "/file"
  local packed = compressed(folder)
  for _, case in ipairs({
    { TEXT, TEXT }, { packed, TEXT }, { packed .. packed, TEXT .. TEXT }, { "", "" },
  }) do
    write(path, case[1])
    luaunit.assertEquals(read_all(path), case[2])
  end
end

function TestGzip.test_damage()
  local folder <close> = scratch.folder()
  local path = folder.path .. "/file"
  local packed = compressed(folder)
  local middle = #packed // 2
  for _, damaged in ipairs({ packed:sub(1, -20),
    packed:sub(1, middle) .. "damage" .. packed:sub(middle + 7) }) do
    write(path, damaged)
    local text, message, code = read_all(path)
    luaunit.assertNil(text)
    luaunit.assertStrContains(message, "damaged gzip data")
    luaunit.assertEquals(code, "EILSEQ")
  end
end

function TestGzip.test_files_that_do_not_open()
  local folder <close> = scratch.folder()
  local none, message, code = gzip.open(folder.path .. "/none")
  luaunit.assertNil(none)
  luaunit.assertStrContains(message, "/none': No such file")
  luaunit.assertEquals(code, "ENOENT")
  luaunit.assertEquals(select(3, gzip.open(folder.path)), "EISDIR")
end

function TestGzip.test_handles()
  local reader = assert(gzip.open("tests/run.lua"))
  luaunit.assertEquals(tostring(reader), "gzip.reader")
  luaunit.assertErrorMsgContains("expected 1 to 16777216, got 0", reader.read, reader, 0)
  reader:close()
  reader:close()
  luaunit.assertEquals(tostring(reader), "gzip.reader (closed)")
  luaunit.assertErrorMsgContains("closed reader", reader.read, reader, 1)
  luaunit.assertErrorMsgContains("gzip.reader expected", reader.read, io.stdout, 1)
end
