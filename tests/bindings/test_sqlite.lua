local cjson = require("cjson")
local fuzz = require("fuzz")
local lfs = require("lfs")
local luaunit = require("luaunit")
local sqlite = require("nclua.sqlite")
local stats = require("nclua.stats")

local function memory()
  return assert(sqlite.open(nil, { mode = "memory" }))
end

--- A database in memory with t(a, b) of n rows: (1, "r1"), (2, "r2") and so on.
local function numbered(n)
  local db = memory()
  assert(db:exec("create table t(a integer primary key, b)"))
  for i = 1, n do assert(db:exec("insert into t values (?, ?)", i, "r" .. i)) end
  return db
end

local function count(db)
  return db:value("select count(*) from t")
end

--- Runs fn with a path that does not exist, and removes what is there afterwards.
local function with_path(fn)
  local path = os.tmpname()
  os.remove(path)
  local ok, message = xpcall(fn, debug.traceback, path)
  for _, rest in ipairs { "", "-journal", "-wal", "-shm" } do os.remove(path .. rest) end
  if not ok then error(message, 0) end
end

TestValues = {}

function TestValues.test_round_trip()
  local db = memory()
  local cases = {
    { 1, 1, "integer" }, { math.maxinteger, math.maxinteger, "integer" },
    { math.mininteger, math.mininteger, "integer" }, { 1.0, 1.0, "real" },
    { 0.1, 0.1, "real" }, { math.huge, math.huge, "real" }, { true, 1, "integer" },
    { false, 0, "integer" }, { "text", "text", "text" }, { "", "", "text" },
    { "a\0b", "a\0b", "text" }, { sqlite.blob("a\0\xff"), "a\0\xff", "blob" },
    { sqlite.blob(""), "", "blob" }, { sqlite.null, nil, "null" },
    { cjson.null, nil, "null" },
    { 0 / 0, nil, "null" },
  }
  for _, case in ipairs(cases) do
    local value, wanted, kind = table.unpack(case, 1, 3)
    local row = db:row("select ?1 as v, typeof(?1) as k", value)
    luaunit.assertEquals(row, { v = wanted, k = kind })
    luaunit.assertEquals(math.type(row.v), math.type(wanted))
  end
  luaunit.assertEquals(db:row("select ? as v, 1 as one", nil), { one = 1 })
end

function TestValues.test_parameters()
  local db = memory()
  local sql = "select :a as a, @b as b, $c as c, :a as again"
  local row = db:row(sql, { a = 1, b = "x", c = sqlite.null })
  luaunit.assertEquals(row, { a = 1, b = "x", again = 1 })
  luaunit.assertEquals(db:row("select ?2 as b, ?1 as a", { 1, 2 }), { a = 1, b = 2 })
  local cases = {
    { "no value for parameter :a", sql, { b = 1, c = 1 } },
    { "3 parameters, but 4 values", sql, { a = 1, b = 1, c = 1, d = 1 } },
    { "1 parameters, but 0 values", "select ?" },
    { "1 parameters, but 2 values", "select ?", 1, 2 },
    { "0 parameters, but 1 values", "select 1", 1 },
    { "parameter 1: expected nil, a bool.- got function", "select ?", print },
    { "parameter :a: .- got table", "select :a", { a = {} } },
    { "parameter 1: .- got userdata", "select ?", io.stdout },
    { "more than one SQL statement", "select 1; select 2" },
    { "no SQL statement", " -- nothing" },
    { "NUL byte", "select 1\0; drop table t" },
  }
  for _, case in ipairs(cases) do
    local ok, message = pcall(db.row, db, table.unpack(case, 2))
    luaunit.assertFalse(ok)
    luaunit.assertStrMatches(message, ".*" .. case[1] .. ".*")
  end
  luaunit.assertEquals(db:value("select 1; -- the end\n ;"), 1)
end

function TestValues.test_identifiers()
  local db = memory()
  for _, name in ipairs { "a", 'a"b', "select", "ä b", "'; drop table x --", "" } do
    local quoted = sqlite.quote_identifier(name)
    assert(db:exec(("create table %s(%s)"):format(quoted, quoted)))
    db:insert(name, { { [name] = 7 } })
    local sql = ("select %s from %s"):format(quoted, quoted)
    luaunit.assertEquals(db:row(sql), { [name] = 7 })
    assert(db:exec("drop table " .. quoted))
  end
  luaunit.assertErrorMsgContains("NUL", sqlite.quote_identifier, "a\0b")
end

TestDatabase = {}

function TestDatabase.test_files()
  with_path(function(path)
    luaunit.assertEquals(select(3, sqlite.open(path, { mode = "ro" })), "SQLITE_CANTOPEN")
    local db = assert(sqlite.open(path))
    luaunit.assertEquals(db.path, path)
    assert(db:exec("create table t(a)"))
    db:close()
    db = assert(sqlite.open(path, { mode = "ro" }))
    local ok, message, code = db:exec("insert into t values (1)")
    luaunit.assertNil(ok)
    luaunit.assertStrContains(message, "readonly")
    luaunit.assertEquals(code, "SQLITE_READONLY")
    db:close()
  end)
end

function TestDatabase.test_open_refuses()
  with_path(function(path)
    local file <close> = assert(io.open(path, "w"))
    assert(file:write(("no database "):rep(1000)))
    file:flush()
    local db, message, code = sqlite.open(path)
    luaunit.assertNil(db)
    luaunit.assertStrContains(message, "cannot open '" .. path .. "'")
    luaunit.assertEquals(code, "SQLITE_NOTADB")
  end)
  luaunit.assertEquals(select(3, sqlite.open("/nowhere/x.db")), "SQLITE_CANTOPEN")
  luaunit.assertErrorMsgContains("not a path", sqlite.open, "")
  luaunit.assertErrorMsgContains("not a path", sqlite.open, "a\0b")
  luaunit.assertErrorMsgContains("has no path", sqlite.open, "x", { mode = "memory" })
  luaunit.assertErrorMsgContains("'mode'", sqlite.open, "x", { mode = "w" })
  local name = "busy_timeout_ms"
  luaunit.assertErrorMsgContains(name, sqlite.open, "x", { busy_timeout = 1 })
  luaunit.assertErrorMsgContains(name, sqlite.open, "x", { busy_timeout_ms = -1 })
end

function TestDatabase.test_errors_show_where()
  local db = memory()
  local cases = {
    { 'near "selec": syntax error (line 1, column 1: \'selec 1\')', "selec 1" },
    { "no such column: nope (line 3, column 2: ' nope", "select 1;\nselect\n nope" },
    { "no such column: misspelt (line 1, column 8", 'select "misspelt"' },
    { "UNIQUE constraint failed: u.a ('insert into u values (1)')",
      "create table u(a unique);\ninsert into u values (1);\ninsert into u values (1)" },
    { "(line 1, column 1114: ' ", "select " .. (" "):rep(1106) .. ")" .. ("x"):rep(500) },
    { "incomplete input", "select (" },
  }
  for _, case in ipairs(cases) do
    local ok, message = db:exec(case[2])
    luaunit.assertNil(ok)
    luaunit.assertStrContains(message, case[1])
    luaunit.assertTrue(#message < 400)
  end
  local stmt, message, code = db:prepare("select *\nfrom nowhere")
  luaunit.assertNil(stmt)
  luaunit.assertStrContains(message, "no such table: nowhere")
  luaunit.assertEquals(code, "SQLITE_ERROR")
  local raised = "SQLITE_ERROR: no such table"
  luaunit.assertErrorMsgContains(raised, db.rows, db, "select 1 from x")
end

function TestDatabase.test_busy()
  with_path(function(path)
    local one = assert(sqlite.open(path))
    local two = assert(sqlite.open(path, { busy_timeout_ms = 20 }))
    assert(one:exec("create table t(a); begin immediate; insert into t values (1)"))
    luaunit.assertEquals(select(3, two:exec("insert into t values (2)")), "SQLITE_BUSY")
    luaunit.assertErrorMsgContains("SQLITE_BUSY", two.insert, two, "t", { { a = 2 } })
    assert(one:exec("commit"))
    two:insert("t", { { a = 2 } })
    luaunit.assertEquals(count(one), 2)
    one:close()
    two:close()
  end)
end

function TestDatabase.test_cannot_load_code_or_break_the_schema()
  local db = numbered(1)
  for _, sql in ipairs {
    "select load_extension('x')", "pragma writable_schema = on; delete from sqlite_master",
    "select fts3_tokenizer('simple', x'00')",
  } do
    luaunit.assertNil((db:exec(sql)))
  end
  assert(db:exec("pragma mmap_size = 1000000"))
  luaunit.assertNil((db:value("pragma mmap_size")))
end

function TestDatabase.test_use_after_close()
  local db = numbered(2)
  local stmt = assert(db:prepare("select * from t"))
  local next_row = stmt:rows()
  next_row()
  db:close()
  db:close()
  luaunit.assertEquals(tostring(db), "sqlite.database (closed)")
  luaunit.assertEquals(tostring(stmt), "sqlite.statement (closed)")
  for _, name in ipairs { "exec", "prepare", "rows", "row", "value", "vector" } do
    luaunit.assertErrorMsgContains("closed database", db[name], db, "select 1")
  end
  luaunit.assertErrorMsgContains("closed database", db.insert, db, "t", {})
  luaunit.assertErrorMsgContains("closed database", db.transaction, db, print)
  luaunit.assertErrorMsgContains("closed database", function() return db.changes end)
  for _, name in ipairs { "bind", "step", "run", "rows", "reset" } do
    luaunit.assertErrorMsgContains("closed statement", stmt[name], stmt)
  end
  luaunit.assertErrorMsgContains("closed statement", next_row)
  stmt:close()
end

function TestDatabase.test_wrong_self()
  local db = numbered(0)
  local stmt = assert(db:prepare("select 1"))
  luaunit.assertErrorMsgContains("sqlite.database expected", db.exec, stmt, "select 1")
  luaunit.assertErrorMsgContains("sqlite.database expected", db.close, io.stdout)
  luaunit.assertErrorMsgContains("sqlite.statement expected", stmt.step, db)
  luaunit.assertErrorMsgContains("has no field 'nope'", function() return db.nope end)
end

function TestDatabase.test_cannot_fork_while_open()
  local ok, ranks = pcall(require, "nclua.ranks")
  luaunit.skipIf(not ok, "nclua.ranks is not there yet")
  local db <close> = memory()
  local report, message = ranks.run { n = 1, fn = function() end }
  luaunit.assertNil(report)
  luaunit.assertStrContains(message, "an open database (close it first)")
  luaunit.assertIsUserdata(db)
end

TestStatement = {}

function TestStatement.test_steps()
  local db = numbered(2)
  local stmt <close> = assert(db:prepare("select a, b from t where a >= ?"))
  luaunit.assertEquals(stmt.columns, { "a", "b" })
  luaunit.assertEquals(stmt.sql, "select a, b from t where a >= ?")
  luaunit.assertErrorMsgContains("no values", stmt.step, stmt)
  luaunit.assertIs(stmt:bind(2), stmt)
  luaunit.assertEquals(stmt:step(), { a = 2, b = "r2" })
  luaunit.assertNil(stmt:step())
  luaunit.assertEquals(stmt:step(), { a = 2, b = "r2" }) -- from the start, same values
  luaunit.assertEquals(stmt:bind(3):step(), nil)
end

function TestStatement.test_run()
  local db = numbered(0)
  local stmt = assert(db:prepare("insert into t values (?, ?)"))
  stmt:run(1, "x"):run { 2, "y" }
  luaunit.assertEquals({ db.changes, db.last_rowid, count(db) }, { 1, 2, 2 })
  luaunit.assertErrorMsgContains("UNIQUE constraint failed: t.a", stmt.run, stmt, 1, "z")
  luaunit.assertErrorMsgContains("no values", stmt.run, stmt) -- not the ones of before
  stmt:bind(3, "z"):run()
  luaunit.assertError(stmt.run, stmt, ("long"):rep(1000), print)
  luaunit.assertErrorMsgContains("no values", stmt.step, stmt)
  luaunit.assertEquals(db:value("select group_concat(b, '') from t"), "xyz")
end

function TestStatement.test_rows_can_be_left()
  local db = numbered(5)
  local stmt = assert(db:prepare("select a from t order by a"))
  for row in stmt:rows() do if row.a == 2 then break end end
  for row in db:rows("select a from t") do if row.a == 2 then break end end
  assert(db:exec("drop table t")) -- a run that was still open would lock the table
  luaunit.assertErrorMsgContains("no such table", stmt.step, stmt)
end

function TestStatement.test_one_run_at_a_time()
  local db = numbered(3)
  local stmt = assert(db:prepare("select a from t"))
  local first, _, _, cursor = stmt:rows()
  luaunit.assertEquals(first(), { a = 1 })
  local second = stmt:rows()
  luaunit.assertErrorMsgContains("run again", first)
  luaunit.assertEquals(second(), { a = 1 })
  cursor:close() -- of the first: the second goes on
  luaunit.assertEquals(second(), { a = 2 })
end

function TestStatement.test_sees_a_changed_table()
  local db = numbered(1)
  local stmt = assert(db:prepare("select * from t"))
  stmt:step()
  stmt:reset()
  assert(db:exec("alter table t add column c default 3; alter table t rename b to bb"))
  luaunit.assertEquals(stmt:step(), { a = 1, bb = "r1", c = 3 })
end

function TestStatement.test_collected_in_use()
  local next_row = numbered(3):rows("select a from t")
  collectgarbage()
  collectgarbage()
  luaunit.assertEquals(next_row(), { a = 1 })
  local stmt = assert(numbered(1):prepare("select b from t"))
  collectgarbage()
  luaunit.assertEquals(stmt:step(), { b = "r1" })
end

--- A finalizer that closes the database, at any allocation of any call.
function TestStatement.test_closed_by_a_finalizer()
  local long = ("x"):rep(200)
  for i = 1, 400 do
    local db = numbered(3)
    local stmt = assert(db:prepare("select a, b, :name as c from t"))
    collectgarbage("incremental", 100 + i % 100)
    setmetatable({}, { __gc = function() db:close() end })
    pcall(function()
      for _ = 1, 60 do
        for row in stmt:rows { name = long .. i } do row.d = {} end
        db:insert("t", { { b = long .. i } })
        db:vector("select a from t")
      end
    end)
    db:close()
  end
end

TestTransaction = {}

function TestTransaction.test_commits_and_returns()
  local db = numbered(0)
  local a, b, c = db:transaction(function(same)
    luaunit.assertIs(same, db)
    luaunit.assertTrue(db.in_transaction)
    assert(db:exec("insert into t values (1, 'x')"))
    return 1, nil, 3
  end, "immediate")
  luaunit.assertEquals({ a, b, c, count(db) }, { 1, nil, 3, 1 })
  luaunit.assertFalse(db.in_transaction)
end

function TestTransaction.test_rolls_back()
  local db = numbered(1)
  local thrown = {}
  local ok, caught = pcall(db.transaction, db, function()
    assert(db:exec("delete from t"))
    error(thrown)
  end)
  luaunit.assertFalse(ok)
  luaunit.assertIs(caught, thrown)
  luaunit.assertEquals(count(db), 1)
  local _, trace = xpcall(db.transaction, debug.traceback, db, function() error("deep") end)
  luaunit.assertStrContains(trace, "test_sqlite.lua") -- the stack where it was raised
end

function TestTransaction.test_nests()
  local db = numbered(0)
  db:transaction(function()
    assert(db:exec("insert into t values (1, 'kept')"))
    pcall(db.transaction, db, function()
      assert(db:exec("insert into t values (2, 'dropped')"))
      db:transaction(function() assert(db:exec("insert into t values (3, 'dropped')")) end)
      error("no")
    end)
    db:transaction(function() assert(db:exec("insert into t values (4, 'kept')")) end)
  end)
  luaunit.assertEquals(db:value("select group_concat(a) from t"), "1,4")
end

function TestTransaction.test_ended_inside()
  local db = numbered(1)
  for _, sql in ipairs { "commit", "rollback" } do
    local function finish() assert(db:exec(sql)) end
    luaunit.assertErrorMsgContains("is active", db.transaction, db, finish)
  end
  local function close() db:close() end
  luaunit.assertErrorMsgContains("closed within", db.transaction, db, close)
  db = numbered(3)
  local ok = pcall(db.transaction, db, function()
    for _ in db:rows("select * from t") do db:close() end
  end)
  luaunit.assertFalse(ok)
end

function TestTransaction.test_cannot_yield()
  local db = numbered(1)
  local ok = coroutine.resume(coroutine.create(function()
    db:transaction(function()
      assert(db:exec("delete from t"))
      coroutine.yield()
    end)
  end))
  luaunit.assertFalse(ok)
  luaunit.assertFalse(db.in_transaction)
  luaunit.assertEquals(count(db), 1)
end

TestInsert = {}

function TestInsert.test_rows()
  local db = numbered(0)
  luaunit.assertIs(db:insert("t", {}), db)
  db:insert("t", { { a = 1, b = "x" }, { b = "y" }, { a = 5, b = sqlite.null } })
  db:insert("t", { { 6, "z" }, { 7 }, { b = "w" } }, { "a", "b" })
  db:insert("t", { { a = 9, other = print } }, { "a" })
  local all = "select group_concat(a || ifnull(b, '-'), ' ') from t"
  luaunit.assertEquals(db:value(all), "1x 2y 5- 6z 7- 8w 9-")
end

function TestInsert.test_all_or_none()
  local db = numbered(1)
  local cases = {
    { "row 2: it has a column that row 1 lacks", { { a = 8 }, { a = 9, b = 1 } } },
    { "row 2: expected a table", { { a = 8 }, 9 } },
    { "row 2: column 1 cannot be a function", { { a = 8 }, { a = print } } },
    { "row 2: more values than columns", { { 8 }, { 9, 9 } }, { "a" } },
    { "row 2: it has none of the columns", { { a = 8 }, { x = 8 } }, { "a" } },
    { "row 2: a list needs", { { a = 8 }, { 9 } } },
    { "row 1: a key is not a column name", { { 8 } } },
    { "row 1: expected a table", { 8 } },
    { "UNIQUE constraint failed", { { a = 8 }, { a = 1 } } },
    { "no column named c", { { c = 8 } } },
    { "expected 1 to 2000 columns", { { a = 8 } }, {} },
    { "column 1: expected a name", { { a = 8 } }, { 1 } },
  }
  for _, case in ipairs(cases) do
    luaunit.assertErrorMsgContains(case[1], db.insert, db, "t", table.unpack(case, 2, 3))
    luaunit.assertEquals({ count(db), db.in_transaction }, { 1, false })
  end
  luaunit.assertErrorMsgContains("no such table: x", db.insert, db, "x", { { a = 1 } })
end

TestAggregates = {}

function TestAggregates.test_equal_those_of_stats()
  local db = memory()
  assert(db:exec("create table t(g, x)"))
  local lists, rows = { {}, {} }, {}
  for i = 1, 201 do
    local g, x = i % 2 + 1, i * 7919 % 1000 / 8
    table.insert(lists[g], x)
    rows[i] = { g, x }
  end
  db:insert("t", rows, { "g", "x" })
  for row in db:rows([[select g, median(x) as median, percentile(x, 0.95) as p95,
      percentile(x, 0.95, 'nearest_rank') as near, percentile(x, 0.9, 'linear') as linear,
      stdev(x) as s, stdev(x, 'population') as p, stdev(x, 'sample') as sample, cv(x) as cv
      from t group by g]]) do
    local x = lists[row.g]
    luaunit.assertEquals(row, {
      g = row.g, median = stats.median(x), p95 = stats.percentile(x, 0.95, "nearest_rank"),
      near = row.p95, linear = stats.percentile(x, 0.9, "linear"),
      s = stats.stdev(x, "population"), p = row.s, sample = stats.stdev(x, "sample"),
      cv = stats.cv_percent(x),
    })
    local v = db:vector("select x from t where g = ?", row.g)
    luaunit.assertEquals(v:to_table(), x)
  end
end

function TestAggregates.test_null_and_nothing()
  local db = memory()
  assert(db:exec("create table t(x); insert into t values (1), (null), ('3'), (5.0)"))
  luaunit.assertEquals(db:value("select median(x) from t"), 3.0)
  luaunit.assertNil(db:value("select median(x) from t where x is null"))
  luaunit.assertNil(db:value("select cv(x) from t where false"))
  assert(db:exec("create view v as select median(x) as m from t"))
  luaunit.assertEquals(db:value("select m from v"), 3.0)
end

function TestAggregates.test_errors()
  local db = memory()
  assert(db:exec("create table t(x); insert into t values (1), ('abc'), (x'00')"))
  local cases = {
    { "median: expected a number, got 'abc'", "select median(x) from t" },
    { "percentile: expected 0 to 1, got '1.5'", "select percentile(x, 1.5) from t" },
    { "percentile: expected 0 to 1, got 'NULL'", "select percentile(x, null) from t" },
    { "'nearest_rank' or 'linear', got 'x'", "select percentile(x, 1, 'x') from t" },
    { "'population' or 'sample', got 'NULL'", "select stdev(x, null) from t" },
    { "wrong number of arguments to function cv", "select cv(x, 1) from t" },
  }
  for _, case in ipairs(cases) do
    luaunit.assertErrorMsgContains(case[1], db.value, db, case[2])
  end
  local raised = "row 2: expected a number"
  luaunit.assertErrorMsgContains(raised, db.vector, db, "select x from t")
end

TestFuzz = {}

function TestFuzz.test_any_value_anywhere()
  local home, scratch = lfs.currentdir(), os.tmpname()
  os.remove(scratch)
  assert(lfs.mkdir(scratch))
  assert(lfs.chdir(scratch))
  local report = fuzz.module(sqlite, {
    n = 30000,
    values = {
      "select a, b from t", "select ?", "select :a", "insert into t values (?, ?)",
      "begin", "commit", "rollback", "delete from t", "select median(a) from t", "t",
      "a", "mode", "memory", "immediate", { 1, "x" }, { a = 1 }, { { a = 9 } }, { "a" },
      "select x from (values (1), (2)) as u(x)", sqlite.null, sqlite.blob("abc"),
    },
    make = {
      function() return numbered(3) end,
      function() return assert(numbered(3):prepare("select a, b, ? from t")) end,
      function() return numbered(3):rows("select * from t") end,
    },
  })
  assert(lfs.chdir(home))
  assert(os.execute("rm -rf '" .. scratch .. "'"))
  luaunit.assertEquals(report.unreached, {})
end
