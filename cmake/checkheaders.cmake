# Target `checkheaders`: every header of src/ and tests/support compiles alone. Not part of `all`.
file(GLOB_RECURSE headers CONFIGURE_DEPENDS
     RELATIVE ${CMAKE_SOURCE_DIR} ${CMAKE_SOURCE_DIR}/src/*.h)
set(stubs)
foreach(header ${headers})
  string(REGEX REPLACE "^src/" "" included ${header})
  string(REPLACE "/" "__" stub ${included})
  set(stub ${CMAKE_BINARY_DIR}/checkheaders/${stub}.cc)
  if(NOT EXISTS ${stub})
    file(WRITE ${stub} "#include \"${included}\"\n")
  endif()
  list(APPEND stubs ${stub})
  if(header MATCHES "kernels/x86/")
    set_source_files_properties(${stub} PROPERTIES COMPILE_OPTIONS
      "-mavx2;-mfma;-mf16c;-mbmi2;-mavx512f;-mavx512bw;-mavx512dq;-mavx512vl;-mavx512vnni")
  endif()
endforeach()
add_library(checkheaders OBJECT EXCLUDE_FROM_ALL ${stubs})
target_link_libraries(checkheaders PRIVATE tessera_options)
# textkit's headers and libraries' include folders, as every layer sees them.
target_include_directories(checkheaders PRIVATE ${CMAKE_SOURCE_DIR}/textkit/include)
target_compile_definitions(checkheaders PRIVATE SPDLOG_COMPILED_LIB SPDLOG_FMT_EXTERNAL)
target_compile_options(checkheaders PRIVATE -Wno-unused-function -Wno-unused-const-variable)
