--- Kernels of our own need NVRTC on a CUDA device: without it patterns, comparisons and
--- spins go through the host or not at all, and not inside a capture.
local kernels = {}

local cuda = require("nclua.cuda")

--- Whether this machine's backend has them.
function kernels.are_there()
  local stream <close> = assert(cuda.stream())
  return (pcall(stream.spin, stream, 1))
end

return kernels
