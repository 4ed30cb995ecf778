--- SPMD: runs a function in several processes at once, one a rank, forked from this one,
--- so that the function is a closure of the same script. Rows come back; a rank that dies,
--- fails or hangs ends the whole world.
local flight = require("nclua.flight")
local oversubscribe = require("nclua.oversubscribe")
local world = require("nclua.world")

local ranks = {}

---What a rank's function gets. A plain table: libraries may add methods to `ranks.Rank`.
---@class ranks.rank
---@field index integer from 0
---@field count integer
---@field device integer|false the device that is current; false if there is none
---@field oversubscribed boolean ranks share devices: times mean nothing
---@field is_pinned boolean to the CPUs near its GPU
---@field handle world.rank
local Rank = {}
Rank.__index = Rank
ranks.Rank = Rank

---A communicator of the whole world; every rank calls it equally often. Raises if it fails.
---@param options? table more options of nccl.comm
---@return nccl.comm
function Rank:comm(options)
  local nccl = require("nclua.nccl")
  local id = self.index == 0 and assert(nccl.unique_id()) or nil
  local given = { id = self.handle:exchange(id), rank = self.index, count = self.count }
  if self.device then given.device = self.device end
  for key, value in pairs(options or {}) do given[key] = value end
  local comm, message, code = nccl.comm(given)
  if not comm then error(("rank:comm: %s (%s)"):format(message, code), 2) end
  return comm
end

---Waits until every rank is here; before that, for the stream to be empty, if one is given.
---@param stream? cuda.stream
function Rank:barrier(stream)
  if stream then stream:sync() end
  self.handle:barrier()
end

---Sends a row to the parent's `on_row`. Rows of a rank arrive in order, in batches.
---@param section string
---@param row table<string, any> nil, booleans, numbers, strings, and tables of these
function Rank:emit(section, row)
  self.handle:emit(section, row)
end

---Records whether something holds.
---@param name string
---@param ok any
---@param details? any what can be sent in a row
---@return any ok
function Rank:check(name, ok, details)
  self.handle:check(name, ok, details)
  return ok
end

---@alias ranks.on_row fun(rank_index: integer, section: string, row: table)
---@alias ranks.on_line fun(rank_index: integer, line: string, stream: "stdout"|"stderr")
---@alias ranks.affinity (integer|integer[])[] one entry a rank: its CPU or CPUs
---@alias ranks.env table<string, string|number|false> false unsets

---@class ranks.options
---@field n? integer how many ranks; default: a launcher's, or one a device
---@field fn fun(rank: ranks.rank) runs in each rank
---@field on_row? ranks.on_row runs here; without it the rows are kept in the report
---@field on_line? ranks.on_line each line that a rank prints; implies output="capture"
---@field env? ranks.env|fun(rank_index: integer): ranks.env variables of the ranks
---@field affinity? ranks.affinity|false default: the CPUs near a rank's GPU, if it has one
---@field output? "inherit"|"capture"|"null" where their stdout and stderr go
---@field log_dir? string a folder: they go to rank-I.stdout and rank-I.stderr there
---@field timeout_s? number end the world if a rank waits and none gets on; default: 60
---@field limit_s? number end the world after so long, whatever it does
---@field grace_s? number from the order to end to SIGKILL; default: 2
---@field device? false touch no device before `fn`; default: rank i's is made current
---@field oversubscribe? boolean allow more ranks than devices

---@class ranks.ended how a rank ended
---@field index integer
---@field exit_code? integer
---@field signal? string
---@field aborted? boolean it was ordered to end
---@field lost? boolean the launcher's process that it belongs to is gone
---@field user_us integer
---@field sys_us integer
---@field max_rss_bytes integer
---@field stdout? string if captured without on_line
---@field stderr? string

---@class ranks.report
---@field count integer
---@field ranks ranks.ended[] in order of index
---@field rows? { rank: integer, section: string, row: table }[]
---@field row_count integer
---@field checks { rank: integer, name: string, ok: boolean, details: any }[]
---@field oversubscribed boolean
---@field wall_us integer
---@field failure? ranks.failure

---@class ranks.failure
---@field code "rank_error"|"rank_died"|"rank_left"|"timeout"|"limit"
---@field rank? integer the rank that caused it
---@field message string
---@field traceback? string of the rank's error
---@field status? flight.rank[] what every rank did
---@field findings? string[] which rank differs
---@field blames_peer? boolean the rank's error is that another one is gone

---The world of processes that a launcher (torchrun, mpirun, srun) made, if there is one.
---There `run` forks one rank in each process; rows come to process 0, and the others get a
---report without rows: what a script writes, it should write in process 0 alone.
---@return { launcher: string, index: integer, count: integer }? nil without a launcher
function ranks.launcher()
  local name, index, count = world.launcher()
  if name then return { launcher = name, index = index, count = count } end
  if index then error(("ranks: %s"):format(index), 2) end
end

local KNOWN = {
  n = true, fn = true, on_row = true, on_line = true, env = true, affinity = true,
  output = true, log_dir = true, timeout_s = true, limit_s = true, grace_s = true,
  device = true, oversubscribe = true,
}

local function check_type(options, key, kind, is_required)
  local value = options[key]
  if value == nil and not is_required then return end
  if type(value) == kind then return end
  error(("ranks.run: option '%s': expected a %s, got %s"):format(key, kind, type(value)), 4)
end

local function check_options(options)
  if type(options) ~= "table" then error("ranks.run: expected a table of options", 3) end
  for key in pairs(options) do
    if not KNOWN[key] then
      error(("ranks.run: unknown option '%s'"):format(tostring(key)), 3)
    end
  end
  check_type(options, "fn", "function", true)
  for _, key in ipairs({ "on_row", "on_line" }) do check_type(options, key, "function") end
  for _, key in ipairs({ "n", "timeout_s", "limit_s", "grace_s" }) do
    check_type(options, key, "number")
  end
  if type(options.env) ~= "function" then check_type(options, "env", "table") end
end

-- How many ranks, on how many devices. nil, message, code: not on this machine.
local function plan(options)
  local devices, backend = world.devices()
  local outer = not world.current() and ranks.launcher() or nil
  local n = options.n or outer and outer.count or math.max(devices, 1)
  -- A launcher may show each of its processes a device of its own, which is number 0.
  local is_bound = outer and devices == 1 and os.getenv("CUDA_VISIBLE_DEVICES") ~= nil
  local crowded = devices > 0 and n > devices and not is_bound
  if crowded and not options.oversubscribe and options.device ~= false then
    return nil, ("%d ranks need %d devices, this machine has %d (%s backend); "
      .. "with oversubscribe=true they share them, and times mean nothing")
      :format(n, n, devices, backend), "no_device"
  end
  return { n = n, devices = devices, backend = backend, oversubscribed = crowded,
    outer = outer, is_bound = is_bound }
end

local function set_env(handle, env, index)
  if type(env) == "function" then env = env(index) end
  for name, value in pairs(env or {}) do
    handle:setenv(name, value and tostring(value) or nil)
  end
end

-- Runs in the rank; the parent goes on in `watch`.
local function serve(handle, options, p)
  local rank = setmetatable({
    index = handle.index, count = handle.count, handle = handle, device = false,
    oversubscribed = p.oversubscribed, is_pinned = options.affinity and true or false,
  }, Rank)
  local device = p.is_bound and 0 or handle.index
  if p.oversubscribed then
    local place = oversubscribe.place(p.backend, handle.index, p.n, p.devices)
    device = place.device
    set_env(handle, place.env, handle.index)
  end
  set_env(handle, options.env, handle.index)
  if options.device ~= false and p.devices > 0 then
    rank.device = device
    if p.backend == "cuda" and options.affinity == nil then
      rank.is_pinned = handle:pin_near_gpu(device) or false -- a machine may not tell
    end
    require("nclua.cuda").set_device(device)
  end
  options.fn(rank)
end

--- A world that runs, as the parent sees it.
local Watch = {}
Watch.__index = Watch

local function now_s()
  return world.now_us() / 1e6
end

function Watch:states()
  local status = self.world:status()
  for i, rank in ipairs(status) do
    local ended = self.report.ranks[i].ended
    rank.state = ended or (rank.finished and "finished" or "running")
  end
  return status
end

-- The first failure counts, except that a death explains the errors that it caused in
-- other ranks, even where those are seen first. Then all ranks are ordered to end.
function Watch:fail(failure)
  local old = self.failure
  local explains = old and failure.rank == self.casualty and failure.code == "rank_died"
  if old and not explains then return end
  if not old then
    self.casualty = self.world:casualty()
    self.status = self:states()
    self.world:abort()
    self.kill_at = now_s() + (self.options.grace_s or 2)
  end
  failure.status = self.status
  self.failure = failure
end

local on = {}

function on.row(self, index, section, row)
  local report = self.report
  report.row_count = report.row_count + 1
  if self.options.on_row then
    self.options.on_row(index, section, row)
  else
    report.rows[#report.rows + 1] = { rank = index, section = section, row = row }
  end
end

function on.check(self, index, name, ok, details)
  local checks = self.report.checks
  checks[#checks + 1] = { rank = index, name = name, ok = ok, details = details }
end

-- An error that blames a peer is the world's, not the script's: who differs, and where?
function on.error(self, index, message, traceback)
  local blames_peer = message:find("ncclRemoteError", 1, true) ~= nil
  local findings = blames_peer and flight.diagnose(self:states()) or nil
  local headline = findings and findings[1] and "\n" .. findings[1] or ""
  self:fail({ code = "rank_error", rank = index, traceback = traceback,
    findings = findings, blames_peer = blames_peer,
    message = ("rank %d: %s%s"):format(index, message, headline) })
end

function on.finished(self, index)
  self.report.ranks[index + 1].finished = true
end

-- Cuts what came into lines; what follows the last newline waits for more.
local function give_lines(self, index, stream, text)
  local begin = 1
  for line, next_begin in text:gmatch("([^\n]*)\n()") do
    self.options.on_line(index, line, stream)
    begin = next_begin
  end
  return text:sub(begin)
end

function on.output(self, index, text, stream)
  local ended = self.report.ranks[index + 1]
  if self.options.on_line then
    ended[stream] = give_lines(self, index, stream, ended[stream] .. text)
  else
    local parts = self.parts[index + 1][stream]
    parts[#parts + 1] = text
  end
end

local function finish_output(self, index, ended)
  for _, stream in ipairs({ "stdout", "stderr" }) do
    if self.options.on_line then
      local rest = ended[stream]
      if rest ~= "" then self.options.on_line(index, rest, stream) end
      ended[stream] = nil
    elseif self.options.output == "capture" then
      ended[stream] = table.concat(self.parts[index + 1][stream])
    end
  end
end

-- A rank that was ordered to end, or killed after the grace, did not fail by itself.
local function judge_exit(self, index, ended)
  if ended.aborted or self.was_killed then return end
  local doing = flight.describe(self.world:status()[index + 1])
  if ended.signal or ended.lost then
    local how = ended.signal and "died of " .. ended.signal or "is gone with its process"
    self:fail({ code = "rank_died", rank = index,
      message = ("rank %d %s: %s"):format(index, how, doing) })
  elseif not ended.finished then
    self:fail({ code = "rank_left", rank = index,
      message = ("rank %d left with status %d before its function ended: %s")
        :format(index, ended.exit_code, doing) })
  end
end

function on.exit(self, index, how)
  local ended = self.report.ranks[index + 1]
  for key, value in pairs(how) do ended[key] = value end
  ended.ended = how.signal or how.lost and "lost" or how.aborted and "aborted"
    or ended.finished and "finished" or ("exit %d"):format(how.exit_code)
  finish_output(self, index, ended)
  judge_exit(self, index, ended)
end

function Watch:time_out(code, what)
  local findings = flight.diagnose(self:states())
  local headline = findings[1] and ": " .. findings[1] or ""
  self:fail({ code = code, findings = findings, message = what .. headline,
    rank = tonumber(headline:match("rank (%d+)")) })
end

function Watch:check_time()
  local now = now_s()
  if self.kill_at then
    if now > self.kill_at and not self.was_killed then
      self.was_killed = true
      self.world:kill()
    end
    return
  end
  local progress, is_waiting = self.world:progress()
  if progress ~= self.progress or self.has_event then
    self.progress, self.moved_at, self.has_event = progress, now, false
  end
  if is_waiting and now - self.moved_at > self.timeout_s then
    self:time_out("timeout", ("no rank got on for %g s"):format(self.timeout_s))
  elseif self.options.limit_s and now - self.started_at > self.options.limit_s then
    self:time_out("limit", ("not all ended within %g s"):format(self.options.limit_s))
  end
end

function Watch:handle(event, ...)
  if not event or event == "done" then return event end
  self.has_event = true
  on[event](self, ...)
  return event
end

-- Time is looked at between events, too: a world that sends without end still has a limit.
function Watch:run()
  local step_ms = math.max(1, math.min(100, self.timeout_s * 250 // 1 | 0))
  local seen = 0
  repeat
    local event = self:handle(self.world:step(step_ms))
    seen = seen + 1
    if not event or seen % 100 == 0 then self:check_time() end
  until event == "done"
end

local function new_report(p)
  local report = { count = p.n, ranks = {}, rows = {}, row_count = 0, checks = {},
    oversubscribed = p.oversubscribed }
  local parts = {}
  for i = 1, p.n do
    report.ranks[i] = { index = i - 1, stdout = "", stderr = "" }
    parts[i] = { stdout = {}, stderr = {} }
  end
  return report, parts
end

local function clean_up(report, options)
  if options.on_row then report.rows = nil end
  for _, ended in ipairs(report.ranks) do
    ended.ended, ended.finished = nil, nil
    if ended.stdout == "" and options.output ~= "capture" then ended.stdout = nil end
    if ended.stderr == "" and options.output ~= "capture" then ended.stderr = nil end
  end
end

local function failure_text(failure)
  if failure.code == "rank_error" and not failure.blames_peer then
    return failure.message
  end
  return failure.message .. "\n" .. flight.table(failure.status)
end

local function output_of(options)
  if options.log_dir then return "files" end
  return options.on_line and "capture" or options.output
end

-- In a launcher's process other than 0: its rank is watched from there.
local function attend(spec, main)
  local member <close>, message, code = world.join(spec, main)
  if not member then return nil, message, code end
  local verdict
  repeat verdict = member:step(1000) until verdict
  if verdict == "good" then
    return { count = spec.count, ranks = {}, rows = {}, row_count = 0, checks = {} }
  end
  return nil, "the world failed: process 0 says why", "peer"
end

---Runs `fn` in `n` processes and waits for all. Must be called before this process touches
---a device. A world that fails gives nil, a message (with a table of what each rank last
---did, where that helps), a code, and the report as far as it got. The code is
---"rank_error", "rank_died", "rank_left", "timeout", "limit", "busy", "no_device", "peer"
---(in a launcher's process other than 0) or an errno name.
---@param options ranks.options
---@return ranks.report? report
---@return string? message
---@return string? code
---@return ranks.report? partial
function ranks.run(options)
  check_options(options)
  local p, why, why_code = plan(options)
  if not p then return nil, why, why_code end
  local spec = { count = p.n, affinity = options.affinity or nil,
    output = output_of(options), log_dir = options.log_dir, launcher = p.outer ~= nil }
  local function main(handle) serve(handle, options, p) end
  if p.outer and p.outer.index > 0 then return attend(spec, main) end

  local report, parts = new_report(p)
  local started_at = now_s()
  local running <close>, message, code = world.fork(spec, main)
  if not running then return nil, message, code end
  local watch = setmetatable({ world = running, options = options, report = report,
    parts = parts, timeout_s = options.timeout_s or 60, started_at = started_at,
    moved_at = started_at }, Watch)
  watch:run()
  report.wall_us = math.floor((now_s() - started_at) * 1e6)
  clean_up(report, options)
  local failure = watch.failure
  report.failure = failure
  if failure then return nil, failure_text(failure), failure.code, report end
  running:settle(true)
  return report
end

return ranks
