---@meta nclua.embedded
--- The files inside the binary: modules ("nclua.csv"), chapters ("chapter:interview"),
--- plugins ("plugin:tuner", not Lua).
local embedded = {}

---@return string[] names
function embedded.names() end

---@param name string
---@return string? text nil if there is no such file
---@return string? path from the repository's root
function embedded.source(name) end

return embedded
