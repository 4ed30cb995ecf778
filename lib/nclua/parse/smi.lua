--- What `nvidia-smi topo` prints: the link matrix (-m) and the peer matrix (-p2p), which
--- look alike and mean different things. Pure: text in, tables out.
local smi = {}

---@class nclua.smi.matrix
---@field kind "links"|"peers" links: NV18, PIX, SYS, …; peers: OK, CNS, …
---@field names string[] columns: GPU0, …, NIC0, …
---@field cells table<string, table<string, string>> [row][column]; "X" on the diagonal
---@field gpus integer
---@field cpu_affinity table<string, string> row name → "0-51"
---@field numa_affinity table<string, string> row name → "0"; "N/A" as printed
---@field legend table<string, string> "NIC0" → "mlx5_0"

local LINKS = {
  X = true, SYS = true, NODE = true, PHB = true, PXB = true, PIX = true, NET = true,
}

local function is_link(cell) return LINKS[cell] or cell:match("^NV%d+$") ~= nil end

-- Column names up to the affinity headings, whose words hold spaces.
local function read_header(line)
  local names = {}
  for word in line:gmatch("%S+") do
    if not (word:match("^GPU%d+$") or word:match("^NIC%d+$") or word:match("^mlx%d+_%d+$"))
    then break end
    names[#names + 1] = word
  end
  return names
end

local function new_matrix(line)
  return {
    names = read_header(line), cells = {}, cpu_affinity = {}, numa_affinity = {},
    legend = {}, gpus = 0, has_cpu = line:find("CPU Affinity", 1, true) ~= nil,
    has_numa = line:find("NUMA Affinity", 1, true) ~= nil,
  }
end

-- A row begins with GPU0 too (indented under -p2p), but X stands on its diagonal.
local function is_header(line)
  local second = line:match("^%s+GPU0%s+(%S+)")
  return second ~= nil and second ~= "X"
end

local function take_row(matrix, line, warnings)
  local words = {}
  for word in line:gmatch("%S+") do words[#words + 1] = word end
  local name, row = words[1], {}
  if #words - 1 < #matrix.names then
    warnings[#warnings + 1] = ("row %s has %d of %d cells"):format(name, #words - 1,
      #matrix.names)
  end
  for i, column in ipairs(matrix.names) do row[column] = words[i + 1] end
  matrix.cells[name] = row
  if name:match("^GPU") then matrix.gpus = matrix.gpus + 1 end
  local rest = #matrix.names + 2
  if matrix.has_cpu then matrix.cpu_affinity[name] = words[rest] end
  if matrix.has_numa then matrix.numa_affinity[name] = words[rest + 1] end
end

local function kind_of(matrix)
  for _, row in pairs(matrix.cells) do
    for _, cell in pairs(row) do
      if cell ~= "X" then return is_link(cell) and "links" or "peers" end
    end
  end
  return matrix.has_cpu and "links" or "peers"
end

--- Reads every matrix in a text.
---@param text string
---@return nclua.smi.matrix[] matrices
---@return string[] warnings
function smi.parse(text)
  local matrices, warnings, current = {}, {}, nil
  -- A terminal's colour and underline codes survive in copies.
  for line in text:gsub("\27%[[%d;]*m", ""):gmatch("([^\n]*)\n?") do
    if is_header(line) then
      current = new_matrix(line)
      matrices[#matrices + 1] = current
    elseif current and line:match("^%s*[GN][PI][UC]%d+%s+%S") then
      take_row(current, line, warnings)
    elseif current then
      local nic, device = line:match("^%s*(NIC%d+):%s*(%S+)")
      if nic then current.legend[nic] = device end
    end
  end
  for _, matrix in ipairs(matrices) do matrix.kind = kind_of(matrix) end
  return matrices, warnings
end

--- How many NVLinks a cell stands for.
---@param cell string
---@return integer
function smi.nvlinks(cell) return math.tointeger(tonumber(cell:match("^NV(%d+)$") or 0)) end

return smi
