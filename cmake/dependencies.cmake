# Debian's static libraries, so that one nclua file runs anywhere. Each is an imported
# target made by pkg-config where a .pc file exists; only the archive (.a) is linked.

function(nclua_static target archive)
  find_library(${target}_ARCHIVE NAMES ${archive} REQUIRED)
  add_library(${target} INTERFACE IMPORTED GLOBAL)
  target_link_libraries(${target} INTERFACE ${${target}_ARCHIVE} ${ARGN})
endfunction()

find_path(LUA_INCLUDE_DIR lua.h PATH_SUFFIXES lua5.4 REQUIRED)
nclua_static(lua liblua5.4.a m ${CMAKE_DL_LIBS})
target_include_directories(lua SYSTEM INTERFACE ${LUA_INCLUDE_DIR})
nclua_static(lua_filesystem liblua5.4-filesystem.a lua)
nclua_static(lua_cjson liblua5.4-cjson.a lua)
nclua_static(sqlite libsqlite3.a m ${CMAKE_DL_LIBS} Threads::Threads)
nclua_static(expat libexpat.a)
nclua_static(z libz.a)
nclua_static(tinfo libtinfo.a)
nclua_static(md libmd.a)
nclua_static(bsd libbsd.a md)
nclua_static(edit libedit.a bsd tinfo)
nclua_static(seccomp libseccomp.a)

# Debian installs Lua modules by version.
find_file(ARGPARSE_LUA argparse.lua PATHS /usr/share/lua/5.4 NO_DEFAULT_PATH REQUIRED)

# Chart.js (MIT), embedded for report.html.
find_file(CHART_JS chart.min.js PATHS /usr/share/javascript/chart.js NO_DEFAULT_PATH REQUIRED)
