local luaunit = require("luaunit")
local report = require("nclua.report")

TestReport = {}

function TestReport.test_table()
  local columns = { { "bytes", "bytes" }, { "mode", "mode" }, { "us", "us", "%.3f" },
    { "ready", "ready", "%%" }, { "note", "note" } }
  local rows = {
    { bytes = 8, mode = "a|b", us = 1 / 3, ready = 0.125 },
    { bytes = 16, mode = "c", us = 2, ready = 1, note = true },
  }
  luaunit.assertEquals(report.table(columns, rows), table.concat({
    "| bytes | mode | us | ready | note |",
    "|---:|---|---:|---:|---|",
    "| 8 | a\\|b | 0.333 | 12.5% |  |",
    "| 16 | c | 2.000 | 100.0% | true |",
  }, "\n"))
end

function TestReport.test_list()
  luaunit.assertEquals(report.list({ "one", "two" }), "- one\n- two")
end
