--- The figures of docs/tuning.md are what the model says today.
local files = require("nclua.files")
local luaunit = require("luaunit")
local process = require("nclua.process")
local scratch = require("scratch")

TestTuningFigures = {}

function TestTuningFigures.test_drawn_from_the_model()
  local folder <close> = scratch.folder()
  local result = assert(process.run({ os.getenv("NCLUA"), "docs/tuning_figures.lua",
    folder.path }, { timeout_s = 60 }))
  luaunit.assertEquals(result.exit_code, 0, result.stderr)
  for _, name in ipairs({ "tuning-times.svg", "tuning-map.svg" }) do
    luaunit.assertEquals(files.read(folder.path .. "/" .. name),
      assert(files.read("docs/" .. name)), name)
  end
end
