---@meta nclua.inventory

---What this machine has. Nothing is initialised in this process, so it may still fork.
local inventory = {}

---@class inventory.library
---@field path string
---@field version string? as the file says it, "2.28.3"

---Every file of a library that can be found, the one that would be opened first.
---@param kind "driver"|"nccl"|"nvrtc"|"cupti"
---@return inventory.library[]
function inventory.libraries(kind) end

---@class inventory.gpu
---@field name string
---@field uuid string
---@field pci_bus_id string
---@field compute_capability string
---@field memory_bytes integer

---Asks the driver, in a child process. The list's `driver_version` is 13000 for CUDA 13.0.
---@param timeout_s integer? 1 to 3600, default 20: a broken driver may hang
---@return inventory.gpu[]? gpus
---@return string? message
---@return string? code
function inventory.gpus(timeout_s) end

---The backend that this process uses or would use, and how many devices it seems to have.
---@return "cuda"|"cpu" name
---@return integer devices
function inventory.backend() end

---Whether this nclua is of a version or newer.
---@param version string "0.1" or "0.1.2"
---@return true? ok
---@return string? message "needs nclua 9.0 or newer; this is 0.1.0"
---@return string? code "EVERSION", or "EINVAL" for what is no version
function inventory.needs(version) end

---@return string version nclua's own
function inventory.version() end

return inventory
