# cmake --install build [--prefix DIR]: the program, its manual page, and what an editor and
# a learner want beside it: annotation stubs and the chapters' sources.

install(TARGETS nclua RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
install(FILES docs/nclua.1 DESTINATION ${CMAKE_INSTALL_MANDIR}/man1)
install(FILES LICENSE README.md DESTINATION ${CMAKE_INSTALL_DOCDIR})
install(DIRECTORY lib/meta lib/nclua scripts DESTINATION ${CMAKE_INSTALL_DATADIR}/nclua
  FILES_MATCHING PATTERN "*.lua")
install(TARGETS trace LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}/nclua)
install(FILES ${PROJECT_BINARY_DIR}/plugins/libnccl-profiler-nclua.so
  DESTINATION ${CMAKE_INSTALL_LIBDIR}/nclua)
