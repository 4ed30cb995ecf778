local hash = require("nclua.hash")
local luaunit = require("luaunit")

-- FIPS 180-2 appendix B, and the empty text.
local DIGESTS = {
  [""] = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
  ["abc"] = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad",
  [("a"):rep(1000000)] = "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0",
}

TestHash = {}

function TestHash.test_texts_and_files()
  local path = os.tmpname()
  for text, digest in pairs(DIGESTS) do
    luaunit.assertEquals(hash.sha256(text), digest)
    do
      local file <close> = assert(io.open(path, "wb"))
      file:write(text)
    end
    luaunit.assertEquals(hash.sha256_file(path), digest)
  end
  os.remove(path)
end

function TestHash.test_missing_file()
  local hex, message, code = hash.sha256_file("/no/such/file")
  luaunit.assertNil(hex)
  luaunit.assertEquals(message, "/no/such/file: No such file or directory")
  luaunit.assertEquals(code, "ENOENT")
  luaunit.assertNil((hash.sha256_file("/")))
end

function TestHash.test_wrong_arguments()
  luaunit.assertErrorMsgContains("string expected", hash.sha256, {})
  luaunit.assertErrorMsgContains("string expected", hash.sha256_file)
end
