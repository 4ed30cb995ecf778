---@meta nclua.hash
--- Checksums, for manifests.
local hash = {}

---@param text string
---@return string hex 64 lower-case digits
function hash.sha256(text) end

---Reads the file piece by piece: its size does not matter.
---@param path string
---@return string? hex 64 lower-case digits
---@return string? message
---@return string? code "ENOENT" or "EIO"
function hash.sha256_file(path) end

return hash
