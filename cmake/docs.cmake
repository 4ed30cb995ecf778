# cmake --build --preset default --target docs: the manual as HTML, in build/docs/html. Needs
# cmark-gfm, says so without it, and fails on a dead link.

add_custom_target(docs
  COMMAND ${CMAKE_COMMAND} -E rm -rf ${PROJECT_BINARY_DIR}/docs/html
  COMMAND nclua docs/manual.lua ${PROJECT_BINARY_DIR}/docs/html
  WORKING_DIRECTORY ${PROJECT_SOURCE_DIR}
  VERBATIM)
