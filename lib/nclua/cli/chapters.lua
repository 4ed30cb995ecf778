--- nclua chapters: the experiments that are in the binary, with one line each.
local command = require("nclua.command")
local embedded = require("nclua.embedded")
local sources = require("nclua.sources")

command.options("nclua chapters", "Lists the chapters in the binary.", {}, arg)
for _, name in ipairs(sources.chapters()) do
  print(("%-12s %s"):format(name, sources.summary(embedded.source("chapter:" .. name))))
end
io.write("\nnclua NAME runs one, nclua NAME --help tells its options,\n",
  "nclua export NAME gives its source, nclua new FILE begins one of your own.\n")
