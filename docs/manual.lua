--- Builds the manual as HTML: README.md, docs/ and whatever they link to, under the paths
--- that they have here. A link that leads nowhere fails it.
---
---   build/nclua docs/manual.lua FOLDER    as cmake --build --preset default --target docs
local files = require("nclua.files")
local lfs = require("lfs")
local process = require("nclua.process")

local CONVERTER = { "cmark-gfm", "--extension", "table", "--to", "html" }
local NAVIGATION = {
  { "README.md", "nclua" },
  { "docs/tutorial.md", "The first hour" },
  { "docs/chapters.md", "Chapters" },
  { "docs/reference/README.md", "Modules" },
  { "docs/tuning.md", "Tuning" },
  { "docs/anatomy.md", "Anatomy" },
  { "docs/queries.md", "Traces" },
  { "docs/measurements/README.md", "Measurements" },
  { "docs/architecture.md", "Architecture" },
}

-- "docs/reference", "../tuning.md" -> "docs/tuning.md"; nil above the project.
local function resolve(folder, link)
  local parts = {}
  for part in (folder .. "/" .. link):gmatch("[^/]+") do
    if part == ".." then
      if not table.remove(parts) then return nil end
    elseif part ~= "." then
      parts[#parts + 1] = part
    end
  end
  return table.concat(parts, "/")
end

-- What a link means: a folder is its README.
local function target_of(folder, link)
  local path = resolve(folder, link)
  if not path then return nil end
  if lfs.attributes(path, "mode") == "directory" then path = path .. "/README.md" end
  return files.exists(path) and path or nil
end

local function html_name(path)
  return (path:gsub("^README%.md$", "index.html"):gsub("%.md$", ".html"))
end

local function relative(from, to)
  local ups = select(2, from:gsub("/", ""))
  return ("../"):rep(ups) .. html_name(to)
end

-- As GitHub names headings, so that a link to one works in both places.
local function slug(html)
  local text = html:gsub("<[^>]*>", ""):gsub("&%w+;", ""):lower()
  return (text:gsub("[^%w%-_ \128-\255]", ""):gsub(" ", "-"))
end

local function name_headings(html)
  local seen = {}
  local named = html:gsub("<(h[1-6])>(.-)</h[1-6]>", function(tag, inner)
    local id = slug(inner)
    local count = seen[id]
    seen[id] = (count or 0) + 1
    if count then
      id = id .. "-" .. count
      seen[id] = 1
    end
    return ('<%s id="%s">%s</%s>'):format(tag, id, inner, tag)
  end)
  return named, seen
end

local Manual = {}
Manual.__index = Manual

function Manual:add(path)
  if self.known[path] then return end
  self.known[path] = true
  self.queue[#self.queue + 1] = path
end

function Manual:problem(page, link, why)
  self.problems[#self.problems + 1] = ("%s: %s: %s"):format(page, link, why)
end

-- One link of a page: where it leads in the manual.
function Manual:rewrite(page, link)
  if link:find("^https?:") or link:find("^mailto:") then return link end
  local path, anchor = link:match("^([^#]*)#?(.*)$")
  local target = path == "" and page or target_of(files.folder(page), path)
  if not target then
    self:problem(page, link, "no such file")
    return link
  end
  self:add(target)
  if anchor == "" then return relative(page, target) end
  self.anchors[#self.anchors + 1] =
    { page = page, link = link, target = target, id = anchor }
  return (path == "" and "" or relative(page, target)) .. "#" .. anchor
end

function Manual:links(page, html)
  return (html:gsub('(<%w+ %w+=")([^"]*)(")', function(before, link, after)
    if not before:find("href") and not before:find("src") then return nil end
    return before .. self:rewrite(page, link) .. after
  end))
end

local function navigation(page)
  local links = {}
  for i, item in ipairs(NAVIGATION) do
    local here = item[1] == page and ' aria-current="page"' or ""
    links[i] = ('<a href="%s"%s>%s</a>'):format(relative(page, item[1]), here, item[2])
  end
  return table.concat(links, "\n")
end

function Manual:page(path)
  local argv = table.move(CONVERTER, 1, #CONVERTER, 1, {})
  argv[#argv + 1] = path
  local result, message = process.run(argv, { timeout_s = 60 })
  if not result or not result.ok then
    error(("%s (Debian: %s): %s"):format(argv[1], argv[1], message or result.stderr), 0)
  end
  local comments = "<!%-%- raw HTML omitted %-%->\n?" -- what it makes of ours
  local html, ids = name_headings(result.stdout:gsub(comments, ""))
  self.ids[path] = ids
  local title = html:match("<h1[^>]*>(.-)</h1>") or path
  local parts = { nav = navigation(path), body = self:links(path, html) }
  parts.title = title:gsub("<[^>]*>", "")
  return (self.template:gsub("{{(%w+)}}", parts))
end

function Manual:write(path)
  local text = path:find("%.md$") and self:page(path) or assert(files.read(path))
  local to = self.folder .. "/" .. html_name(path)
  assert(files.make_folder(files.folder(to)))
  assert(files.write(to, text))
end

function Manual:check_anchors()
  for _, anchor in ipairs(self.anchors) do
    local ids = self.ids[anchor.target]
    if ids and not ids[anchor.id] then
      self:problem(anchor.page, anchor.link, "no such heading")
    end
  end
end

function Manual:add_folder(folder)
  for name in lfs.dir(folder) do
    local path = folder .. "/" .. name
    if name:find("^[^.].*%.md$") then
      self:add(path)
    elseif not name:find("^%.") and lfs.attributes(path, "mode") == "directory" then
      self:add_folder(path)
    end
  end
end

local function main(folder)
  local template = assert(files.read("docs/manual.html"))
  local manual = setmetatable({ folder = folder, template = template, known = {},
    queue = {}, problems = {}, anchors = {}, ids = {} }, Manual)
  for _, item in ipairs(NAVIGATION) do manual:add(item[1]) end
  manual:add_folder("docs")
  local done = 0
  while done < #manual.queue do
    done = done + 1
    manual:write(manual.queue[done])
  end
  manual:check_anchors()
  for _, problem in ipairs(manual.problems) do
    io.stderr:write("dead link: ", problem, "\n")
  end
  if #manual.problems > 0 then os.exit(1) end
  print(("%s/index.html: %d files"):format(folder, done))
end

if not arg[1] then
  io.stderr:write("usage: nclua docs/manual.lua FOLDER\n")
  os.exit(2)
end
main(arg[1])
