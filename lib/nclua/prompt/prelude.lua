--- What is there at the prompt without a require.
local prelude = {}

local plot = require("nclua.prompt.plot")
local world = require("nclua.prompt.world")

local GLOBALS = {
  cuda = require("nclua.cuda"),
  nccl = require("nclua.nccl"),
  plot = plot.print,
  process = require("nclua.process"),
  sqlite = require("nclua.sqlite"),
  stats = require("nclua.stats"),
  world = world.open,
}

---Globals that a script or -l has set already stay.
function prelude.install()
  for name, value in pairs(GLOBALS) do
    if rawget(_G, name) == nil then rawset(_G, name, value) end
  end
end

return prelude
