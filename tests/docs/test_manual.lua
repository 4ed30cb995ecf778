--- The manual as HTML: it builds, its links lead somewhere, and a dead one fails the build.
local files = require("nclua.files")
local luaunit = require("luaunit")
local process = require("nclua.process")
local programs = require("nclua.programs")
local scratch = require("scratch")

TestManual = {}

local function build(root, folder)
  if not programs.find("cmark-gfm") then luaunit.skip("cmark-gfm is not installed") end
  return assert(process.run({ os.getenv("NCLUA"), "docs/manual.lua", folder },
    { cwd = root, timeout_s = 120 }))
end

local function check_links(root, page)
  local html, folder = files.read(root .. "/" .. page), files.folder(root .. "/" .. page)
  for link in html:gmatch('<%w+ %w+="([^"]*)"') do
    local is_inner = link:find("[./]") and not link:find("^https?:") and not link:find("^#")
    if is_inner then
      local path = folder .. "/" .. link:gsub("#.*$", "")
      luaunit.assertTrue(files.exists(path), page .. ": " .. link)
    end
  end
  for _, outside in ipairs({ "<script", "<link", 'src="http', "@import", "url(" }) do
    luaunit.assertNil(html:find(outside, 1, true), page .. ": " .. outside)
  end
end

function TestManual.test_links_lead_somewhere()
  local folder <close> = scratch.folder()
  local result = build(".", folder.path)
  luaunit.assertEquals(result.exit_code, 0, result.stderr)
  local count = 0
  for _, name in ipairs(files.list(folder.path)) do
    if name:find("%.html$") then
      check_links(folder.path, name)
      count = count + 1
    end
  end
  luaunit.assertTrue(count > 70)
  luaunit.assertTrue(files.exists(folder.path .. "/docs/anatomy-ring.svg"))
  luaunit.assertTrue(files.exists(folder.path .. "/docs/timeline.png"))
  local tutorial = files.read(folder.path .. "/docs/tutorial.html")
  luaunit.assertStrContains(tutorial, '<a href="../docs/anatomy.html">')
  luaunit.assertStrContains(tutorial, "w:time(&quot;all_reduce&quot;, x, x")
end

-- A small project with the pages that the navigation names.
local function small_project(root, readme)
  local navigation = files.read("docs/manual.lua")
  for name in navigation:gmatch('{ "([%w_/]+%.md)", "') do
    assert(files.make_folder(files.folder(root .. "/" .. name)))
    assert(files.write(root .. "/" .. name, "# Page\n\n## A part\n"))
  end
  for _, name in ipairs({ "docs/manual.lua", "docs/manual.html" }) do
    assert(files.write(root .. "/" .. name, files.read(name)))
  end
  assert(files.write(root .. "/README.md", readme))
end

local LINKS = "# Links\n\n[a](docs/tuning.md#a-part) [b](docs/) [c](gone.md) "
  .. "[d](docs/tuning.md#gone) [e](../../outside.md) [f](#links)\n\n![g](gone.svg)\n"

function TestManual.test_a_dead_link_fails()
  local project <close> = scratch.folder()
  local out <close> = scratch.folder()
  small_project(project.path, LINKS)
  local result = build(project.path, out.path)
  luaunit.assertEquals(result.exit_code, 1)
  local dead = {}
  for link in result.stderr:gmatch("dead link: README.md: (%S+): ") do
    dead[#dead + 1] = link
  end
  luaunit.assertItemsEquals(dead,
    { "docs/", "gone.md", "docs/tuning.md#gone", "../../outside.md", "gone.svg" })
end
