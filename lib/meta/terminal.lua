---@meta nclua.terminal
--- Is somebody watching, and how wide is their window?
local terminal = {}

---@param stream "stdin"|"stdout"|"stderr"
---@return boolean
function terminal.is_terminal(stream) end

---@param stream "stdin"|"stdout"|"stderr"
---@return integer? columns nil if it is no terminal
function terminal.columns(stream) end

return terminal
