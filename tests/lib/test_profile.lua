--- One question, whoever records: a stand-in for nsys, and nclua's own tracer.
local lfs = require("lfs")
local luaunit = require("luaunit")
local process = require("nclua.process")
local profile = require("nclua.profile")
local scratch = require("scratch")

local NCLUA = os.getenv("NCLUA")
local WORK = [[local cuda = require("nclua.cuda")
  local x <close> = cuda.buffer("f32", 100)
  x:pattern({ start = 0, step = 1, modulus = 3 })
  cuda.synchronize()]]

-- An nsys that "records" by handing out a trace made before; its report is that file.
local NSYS = [[#!/bin/sh
set -e
for word; do
  case $word in --output=*) out=${word#--output=} ;; esac
  last=$word
done
case $1 in
  profile) [ -z "$NSYS_FAILS" ] || { echo "no driver for this nsys" >&2; exit 3; }
    cp "$NSYS_TRACE" "$out.nsys-rep" ;;
  export) cp "$last" "$out" ;;
esac
]]

local function with_nsys(folder, kernels)
  local trace = folder .. "/made.sqlite"
  assert(process.run({ NCLUA, "--backend", "cpu", "--trace", trace, "-e",
    kernels and WORK or "" }).ok)
  local path = folder .. "/bin/nsys"
  assert(lfs.mkdir(folder .. "/bin"))
  local out = assert(io.open(path, "w"))
  out:write(NSYS)
  out:close()
  assert(process.run({ "chmod", "+x", path }).ok)
  return trace
end

-- The library looks nsys up in its own PATH: each case is a process of its own.
local function ask(folder, tool, env)
  local file = folder .. "/answer.sqlite"
  env.PATH = folder .. "/bin:" .. os.getenv("PATH")
  env.NCLUA_BACKEND = "cpu"
  local script = ([[
    local profile = require("nclua.profile")
    local result, message, code = profile.run({ %q, "-e", %q }, { file = %q, tool = %q })
    if not result then print("nil", message, code) return end
    print(result.tool, #result.kernels, result.kernels[1] and result.kernels[1].name,
      result.nsys_message)
  ]]):format(NCLUA, WORK, file, tool)
  local result = assert(process.run({ NCLUA, "-e", script }, { env = env, timeout_s = 60 }))
  luaunit.assertEquals(result.stderr, "")
  return result.stdout, file
end

TestProfile = {}

function TestProfile.test_nsys_where_it_works()
  local folder <close> = scratch.folder()
  local trace = with_nsys(folder.path, true)
  local said, file = ask(folder.path, "auto", { NSYS_TRACE = trace })
  luaunit.assertEquals(said, "nsys\t1\tnclua_pattern\tnil\n")
  luaunit.assertNotNil(lfs.attributes(file))
  for name in lfs.dir(folder.path) do
    luaunit.assertNil(name:find("nsys%-rep"), name)
  end
end

function TestProfile.test_our_tracer_elsewhere()
  local folder <close> = scratch.folder()
  local said = ask(folder.path, "auto", {})
  luaunit.assertEquals(said, "nclua\t1\tnclua_pattern\tnsys is not on the PATH\n")
  local empty = with_nsys(folder.path, false)
  said = ask(folder.path, "auto", { NSYS_TRACE = empty })
  luaunit.assertEquals(said, "nclua\t1\tnclua_pattern\tnsys recorded no kernel\n")
  said = ask(folder.path, "auto", { NSYS_FAILS = "1" })
  luaunit.assertStrContains(said, "nclua\t1\tnclua_pattern")
  luaunit.assertStrContains(said, "no report: exit status 3: no driver for this nsys")
  said = ask(folder.path, "nsys", { NSYS_FAILS = "1" })
  luaunit.assertStrContains(said, "nil\tnsys profile wrote no report")
  said = ask(folder.path, "nclua", { NSYS_TRACE = empty })
  luaunit.assertEquals(said, "nclua\t1\tnclua_pattern\tnil\n")
end

function TestProfile.test_kernels_and_failures()
  local folder <close> = scratch.folder()
  local file = folder.path .. "/a.sqlite"
  local result = assert(profile.run({ NCLUA, "--backend", "cpu", "-e", WORK },
    { file = file, tool = "nclua" }))
  luaunit.assertTrue(result.process.ok)
  local kernel = result.kernels[1]
  luaunit.assertEquals({ kernel.grid_x, kernel.block_x, kernel.device }, { 1, 1, 0 })
  luaunit.assertTrue(kernel.end_ns > kernel.start_ns)
  luaunit.assertEquals(#assert(profile.kernels(file, "nclua_*")), 1)
  luaunit.assertEquals(#assert(profile.kernels(file, "nccl*")), 0)
  local _, message, code = profile.run({ "false" }, { file = file, tool = "nclua" })
  luaunit.assertStrContains(message, "left no trace: exit status 1")
  luaunit.assertEquals(code, "no_trace")
  _, message = profile.run({ "/no/such/program" }, { file = file, tool = "nclua" })
  luaunit.assertStrContains(message, "/no/such/program")
  _, message = profile.kernels(folder.path .. "/none")
  luaunit.assertStrContains(message, "is not a file")
end
