---@meta nclua.xml

---XML documents into tables, by expat.
local xml = {}

---@class xml.element
---@field name string
---@field attributes table<string, string>
---@field children xml.element[] elements only: text between them is not kept

---Reads a whole document. Nesting is limited to 200, entity declarations are refused.
---@param text string
---@return xml.element? root
---@return string? message "line 3: mismatched tag"
---@return string? code "EINVAL"
function xml.parse(text) end

return xml
