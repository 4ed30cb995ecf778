---@meta nclua.stats
---Statistics over lists of numbers. Every function takes a table (read raw, 1 to #t) or a
---vector, and never changes it. An empty list, a closed vector or an element that is not a
---number raises; a NaN anywhere makes the result NaN (in `summary`, every field but count).
local stats = {}

---A growing array of doubles in C, 8 bytes a number. Every function of the module with a
---list as its first argument is also a method: `v:median()`. `#v` is its length, `v[i]` an
---element or nil; `v[i] = x` replaces one of 1 to #v.
---@class stats.vector: stats.methods
---@operator len: integer
---@field [integer] number
local vector = {}

---Appends numbers, all or (after an error) none.
---@param ... number
---@return stats.vector self
function vector:push(...) end

---Appends all numbers of a list.
---@param list stats.list
---@return stats.vector self
function vector:append(list) end

---@return number[]
function vector:to_table() end

---The raw doubles in the machine's byte order; `stats.from_string` reads them back.
---@return string
function vector:to_string() end

---Frees the memory now; any later use but `close` raises. Also `<close>`.
function vector:close() end

---@alias stats.list number[]|stats.vector

---A vector of the numbers given, or a copy of a list.
---@param ... number|stats.list
---@return stats.vector
---@overload fun(list: stats.list): stats.vector
function stats.vector(...) end

---A vector of raw doubles; raises unless the length is a multiple of 8.
---@param bytes string
---@return stats.vector
function stats.from_string(bytes) end

---Reads one number a line, as C's strtod does. Empty lines and lines that begin with `#` are
---skipped; any other line is an error that names it.
---@param path string
---@return stats.vector? vector
---@return string? message
---@return string? code "EINVAL" for a line that is not a number, else as of errno: "ENOENT"
function stats.from_file(path) end

---Compensated sum (Neumaier): exact to the last bits whatever the order. 0 for no numbers.
---@param x stats.list
---@return number
function stats.sum(x) end

---@param x stats.list
---@return number
function stats.mean(x) end

---0 if an element is 0, NaN if one is negative.
---@param x stats.list
---@return number
function stats.geometric_mean(x) end

---@param x stats.list
---@return number
function stats.min(x) end

---@param x stats.list
---@return number
function stats.max(x) end

---Standard deviation, divided by n or by n - 1. One element: 0, or NaN for "sample".
---@param x stats.list
---@param kind "population"|"sample"
---@return number
function stats.stdev(x, kind) end

---Population standard deviation / mean × 100; 0 for one element.
---@param x stats.list
---@return number
function stats.cv_percent(x) end

---The middle element, or the mean of the two in the middle.
---@param x stats.list
---@return number
function stats.median(x) end

---Median absolute deviation from the median, not scaled.
---@param x stats.list
---@return number
function stats.mad(x) end

---"nearest_rank" is an element: `ordered[ceil(q n)]` (the first for q = 0). "linear" is
---between the neighbours of the 0-based place (n - 1) q.
---@param x stats.list
---@param q number 0 to 1
---@param method "nearest_rank"|"linear"
---@return number
function stats.percentile(x, q, method) end

---@class stats.summary
---@field count integer
---@field mean number
---@field median number
---@field mad number
---@field stdev number population
---@field cv_percent number
---@field min number
---@field max number
---@field p05 number nearest rank, as are the other percentiles
---@field p25 number
---@field p75 number
---@field p95 number
---@field p99 number

---@param x stats.list
---@return stats.summary
function stats.summary(x) end

---@class stats.bootstrap_options
---@field confidence? number between 0 and 1, default 0.95
---@field resamples? integer default 2000
---@field seed? integer default 1: the same seed gives the same bits on every machine

---Percentile bootstrap interval of the median.
---@param x stats.list
---@param options? stats.bootstrap_options
---@return number low
---@return number high
function stats.bootstrap_median(x, options) end

---@class stats.mann_whitney
---@field u number pairs (one of a, one of b) in which a's is larger; a tie counts a half
---@field z number of u, with tie and continuity correction; 0 if all elements are equal
---@field p number two-sided
---@field exact boolean p is from the exact distribution (no ties, at most 40 elements)

---Do two samples come from one distribution? A small p says that they do not.
---@param a stats.list
---@param b stats.list
---@return stats.mann_whitney
function stats.mann_whitney(a, b) end

return stats
