---@meta nclua.embedded
--- The Lua files inside the binary: modules ("nclua.csv") and chapters ("chapter:interview").
---@field version string of nclua, "0.1.0"
local embedded = {}

---@return string[] names
function embedded.names() end

---@param name string
---@return string? text nil if there is no such file
---@return string? path from the repository's root
function embedded.source(name) end

return embedded
