# Compiler options, the same for every target. `tessera_options` carries them.
set(CMAKE_CXX_STANDARD 23)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)

find_program(CCACHE_PROGRAM ccache)
if(CCACHE_PROGRAM)
  set(CMAKE_C_COMPILER_LAUNCHER ${CCACHE_PROGRAM})
  set(CMAKE_CXX_COMPILER_LAUNCHER ${CCACHE_PROGRAM})
endif()

# Linking and Beast-heavy files are memory hungry; one link at a time is enough on two cores.
set_property(GLOBAL PROPERTY JOB_POOLS link=1)
set(CMAKE_JOB_POOL_LINK link)

add_library(tessera_options INTERFACE)
target_include_directories(tessera_options INTERFACE ${CMAKE_SOURCE_DIR}/src)
target_compile_definitions(tessera_options INTERFACE
  TESSERA_VERSION="${PROJECT_VERSION}")
target_compile_options(tessera_options INTERFACE
  -Wall -Wextra -Wconversion -Wno-sign-conversion -Wshadow -Werror
  # Bitwise determinism: no contraction of a*b+c unless the source says fma.
  -ffp-contract=off -fno-math-errno
  -ffile-prefix-map=${CMAKE_SOURCE_DIR}/=)
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  # GCC 12 reports these wrongly through std::expected and std::string at -O2.
  target_compile_options(tessera_options INTERFACE -Wno-maybe-uninitialized -Wno-restrict)
endif()
if(CMAKE_CXX_COMPILER_ID STREQUAL "Clang")
  # libstdc++ 12 uses a function that it deprecates itself inside std::stable_sort and its kin.
  target_compile_options(tessera_options INTERFACE -Wno-deprecated-declarations)
endif()
if(TESSERA_OPT_DEBUG)
  target_compile_options(tessera_options INTERFACE -O1 -g1 -fno-omit-frame-pointer)
endif()
if(TESSERA_SANITIZE)
  target_compile_options(tessera_options INTERFACE -fsanitize=${TESSERA_SANITIZE} -fno-sanitize-recover=all)
  target_link_options(tessera_options INTERFACE -fsanitize=${TESSERA_SANITIZE})
endif()
if(TESSERA_FUZZ)
  target_compile_options(tessera_options INTERFACE -fsanitize=fuzzer-no-link)
endif()
