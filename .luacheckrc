std = "lua54"
max_line_length = 92
ignore = { "211/_.*", "212/_.*" }
exclude_files = { "build*", "lib/meta" }
files["tests"] = { allow_defined_top = true } -- luaunit finds global Test tables
