---@meta nclua.gzip

---Reads a file or standard input, decompressed if it is gzip, as it is if not.
local gzip = {}

---@param path? string nil: standard input
---@return gzip.reader? reader
---@return string? message
---@return string? code "ENOENT", "EISDIR"
function gzip.open(path) end

---Packs a text in zlib's format, as SQLite's archives have it.
---@param text string
---@return string data
function gzip.deflate(text) end

---@param data string from `gzip.deflate`
---@param bytes integer that it must give, at most 2 GiB
---@return string? text
---@return string? message
---@return string? code "EILSEQ"
function gzip.inflate(data, bytes) end

---@class gzip.reader
local reader = {}

---Up to `most` bytes; an empty string at the end.
---@param most integer 1 to 16 MiB
---@return string? bytes
---@return string? message
---@return string? code "EILSEQ" damaged, "EIO"
function reader:read(most) end

---Also `<close>`.
function reader:close() end

return gzip
