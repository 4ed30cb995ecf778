---@meta nclua.sandbox

---What a script from somebody else may do (`nclua --sandbox`).
local sandbox = {}

---@class sandbox.status
---@field active boolean is this process confined?
---@field landlock integer the version of the kernel's Landlock, 0: it has none
---@field seccomp boolean does the kernel filter system calls?
---@field folder? string the only place to write

---What the kernel offers, and what holds in this process.
---@return sandbox.status
function sandbox.status() end

---May a path be used? Always, outside a sandbox. The kernel is the guard; this gives the
---reason beforehand.
---@param path string
---@param use "read"|"write"
---@return boolean? ok
---@return string? message
---@return string? code "EACCES"
function sandbox.check(path, use) end

return sandbox
