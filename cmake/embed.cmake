# embed_lua(TARGET NAME FILE [NAME FILE ...]): puts Lua files into TARGET as read-only data.
# The assembler reads the files (.incbin); host/embed.c finds them by name in the table.

function(embed_lua target)
  set(asm "  .section .rodata\n")
  set(externs "")
  set(rows "")
  set(files "")
  set(index 0)
  while(ARGN)
    list(POP_FRONT ARGN name file)
    cmake_path(ABSOLUTE_PATH file BASE_DIRECTORY ${CMAKE_CURRENT_SOURCE_DIR} NORMALIZE)
    cmake_path(RELATIVE_PATH file BASE_DIRECTORY ${PROJECT_SOURCE_DIR} OUTPUT_VARIABLE shown)
    if(shown MATCHES "^\\.\\./")
      set(shown "${name}.lua")
    endif()
    string(APPEND asm "embedded_${index}:\n  .incbin \"${file}\"\nembedded_${index}_end:\n"
      "  .globl embedded_${index}, embedded_${index}_end\n"
      "  .hidden embedded_${index}, embedded_${index}_end\n")
    string(APPEND externs "extern const char embedded_${index}[], embedded_${index}_end[];\n")
    string(APPEND rows
      "  {\"${name}\", \"${shown}\", embedded_${index}, embedded_${index}_end},\n")
    list(APPEND files ${file})
    math(EXPR index "${index} + 1")
  endwhile()
  string(APPEND asm "  .section .note.GNU-stack,\"\",%progbits\n")

  set(out ${CMAKE_CURRENT_BINARY_DIR}/embedded)
  file(CONFIGURE OUTPUT ${out}.S CONTENT "@asm@" @ONLY)
  file(CONFIGURE OUTPUT ${out}.c @ONLY CONTENT
    "#include \"host/embed.h\"\n\n@externs@\nconst struct embedded embedded_files[] = {\n@rows@  {0},\n};\n")
  set_source_files_properties(${out}.S TARGET_DIRECTORY ${target} PROPERTIES OBJECT_DEPENDS "${files}")
  target_sources(${target} PRIVATE ${out}.S ${out}.c)
endfunction()

# embed_text(TARGET SYMBOL FILE): the file's text with a NUL at its end, as
# `extern const char SYMBOL[];`.
function(embed_text target symbol file)
  cmake_path(ABSOLUTE_PATH file BASE_DIRECTORY ${CMAKE_CURRENT_SOURCE_DIR} NORMALIZE)
  set(out ${CMAKE_CURRENT_BINARY_DIR}/${symbol}.S)
  file(CONFIGURE OUTPUT ${out} @ONLY CONTENT
    "  .section .rodata\n  .globl @symbol@\n  .hidden @symbol@\n@symbol@:\n  .incbin \"@file@\"\n  .byte 0\n  .section .note.GNU-stack,\"\",%progbits\n")
  set_source_files_properties(${out} PROPERTIES OBJECT_DEPENDS ${file})
  target_sources(${target} PRIVATE ${out})
endfunction()
