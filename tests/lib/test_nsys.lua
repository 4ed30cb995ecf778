--- nclua.parse.nsys: exports of several schemas, made here.
local luaunit = require("luaunit")
local nsys = require("nclua.parse.nsys")
local scratch = require("scratch")
local sqlite = require("nclua.sqlite")

local KERNEL = "CUPTI_ACTIVITY_KIND_KERNEL"

-- Name, statements, column that names come from, first kernel.
local SCHEMAS = {
  { "nsys", {
      "create table StringIds (id integer, value text)",
      "insert into StringIds values (1, 'ncclDevKernel_AllReduce<float>'), (2, 'short')",
      "create table TARGET_INFO_GPU (id integer, name text)",
      "insert into TARGET_INFO_GPU values (0, 'NVIDIA H200')",
      "create table " .. KERNEL .. " (start integer, end integer, deviceId integer,"
        .. " streamId integer, demangledName integer, shortName integer, gridX integer,"
        .. " gridY integer, gridZ integer, blockX integer, blockY integer, blockZ integer)",
      "insert into " .. KERNEL .. " values (2000, 5000, 0, 7, 1, 2, 2, 1, 1, 512, 1, 1),"
        .. " (1000, 1500, 0, 7, 1, 2, 2, 1, 1, 512, 1, 1)",
    }, "demangledName", { name = "ncclDevKernel_AllReduce<float>", start_ns = 1000,
      end_ns = 1500, grid = { 2, 1, 1 }, block = { 512, 1, 1 }, stream = 7, device = 0 } },
  { "mangled text", {
      "create table " .. KERNEL .. " (start integer, end integer, mangledName text)",
      "insert into " .. KERNEL .. " values (1, 2, '_Z1kv')",
    }, "mangledName", { name = "_Z1kv", start_ns = 1, end_ns = 2 } },
  { "no names", {
      "create table " .. KERNEL .. " (start integer, end integer, correlationId integer)",
      "insert into " .. KERNEL .. " values (1, 2, 9)",
    }, nil, { name = "?", start_ns = 1, end_ns = 2, correlation = 9 } },
  { "nvprof", {
      "create table StringTable (_id_ integer, value text)",
      "insert into StringTable values (4, 'kernel')",
      "create table " .. KERNEL .. " (_id_ integer, start integer, end integer,"
        .. " name integer)",
      "insert into " .. KERNEL .. " values (1, 10, 20, 4)",
    }, "name", { name = "kernel", start_ns = 10, end_ns = 20 } },
  { "only schedules", { "create table SCHED_EVENTS (id integer)" }, nil, nil },
}

TestNsys = {}

function TestNsys.test_schemas()
  for _, case in ipairs(SCHEMAS) do
    local name, statements, column, first = table.unpack(case, 1, 4)
    local folder <close> = scratch.folder()
    local path = folder.path .. "/trace.sqlite"
    local db = assert(sqlite.open(path))
    for _, sql in ipairs(statements) do db:exec(sql) end
    db:close()
    local trace <close> = assert(nsys.open(path))
    luaunit.assertEquals({ trace.name_column, trace.has_kernels }, { column, first ~= nil },
      name)
    local kernels = {}
    for kernel in trace:kernels() do kernels[#kernels + 1] = kernel end
    luaunit.assertEquals(kernels[1], first, name)
    luaunit.assertEquals(#trace:summary(), first and 1 or 0, name)
  end
end

function TestNsys.test_summary()
  local folder <close> = scratch.folder()
  local path = folder.path .. "/trace.sqlite"
  local db = assert(sqlite.open(path))
  for _, sql in ipairs(SCHEMAS[1][2]) do db:exec(sql) end
  db:close()
  local trace <close> = assert(nsys.open(path))
  luaunit.assertEquals(trace.devices[0], "NVIDIA H200")
  luaunit.assertEquals(trace:summary()[1], {
    name = "ncclDevKernel_AllReduce<float>", grid_x = 2, block_x = 512, count = 2,
    total_us = 3.5, median_us = 1.75, min_us = 0.5, max_us = 3.0,
  })
end

function TestNsys.test_what_is_no_trace()
  local folder <close> = scratch.folder()
  luaunit.assertEquals(select(3, nsys.open(folder.path .. "/none")), "SQLITE_CANTOPEN")
  local path = folder.path .. "/text"
  local file = assert(io.open(path, "w"))
  file:write(("not a database "):rep(100))
  file:close()
  local trace, message, code = nsys.open(path)
  luaunit.assertNil(trace)
  luaunit.assertStrContains(message, "not a database")
  luaunit.assertEquals(code, "SQLITE_NOTADB")
end
