# Compiler settings, and the function every folder uses: halftone_room().
set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
set(CMAKE_RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/bin)
if(NOT CMAKE_BUILD_TYPE)
  set(CMAKE_BUILD_TYPE Release)
endif()

# Looked for once: a ccache that `make test` installs later would change every compile command and rebuild what `make build` made.
find_program(CCACHE ccache)
if(NOT CCACHE)
  set(CCACHE "" CACHE FILEPATH "the compiler cache; empty: none" FORCE)
endif()
if(CCACHE AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  # The sloppiness lets ccache serve files that use a precompiled header.
  set(CMAKE_CXX_COMPILER_LAUNCHER ${CMAKE_COMMAND} -E env
      CCACHE_SLOPPINESS=pch_defines,time_macros,include_file_mtime,include_file_ctime ${CCACHE})
  add_compile_options($<$<CXX_COMPILER_ID:GNU>:-fpch-preprocess>)
endif()

# The processor family that has vector kernels. Known to every target: with a macro less than it was made with, a precompiled header
# is not used.
if(CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|AMD64")
  set(HALFTONE_X86 ON)
  add_compile_definitions(HALFTONE_X86)
endif()

# A precompiled header that cannot be used is an error: the file would compile all the same, in three times the time.
add_compile_options($<$<CXX_COMPILER_ID:GNU>:-Werror=invalid-pch>)
add_compile_options(-Wall -Wextra -Wno-unused-parameter -Wno-missing-field-initializers)
# The library exports what is marked HALFTONE_API (halftone/base/api.h). Tests of other functions link the components.
add_compile_options(-fvisibility=hidden -fvisibility-inlines-hidden)
if(HALFTONE_SANITIZE)
  add_compile_options(-fsanitize=${HALFTONE_SANITIZE} -fno-omit-frame-pointer -fno-sanitize-recover=all)
  add_link_options(-fsanitize=${HALFTONE_SANITIZE})
  # libtorch's classes are without the type information that this check asks for.
  if(HALFTONE_TORCH AND HALFTONE_SANITIZE MATCHES "undefined")
    add_compile_options(-fno-sanitize=vptr)
  endif()
endif()

# fmt is compiled once, in src/base/fmt_compiled.cpp; components that know torch see torch's copy of it, whose names differ
# (src/graph/aten/fmt_compiled.cpp). Only the headers are asked for here.
find_package(fmt REQUIRED)
add_library(halftone_fmt INTERFACE)
target_include_directories(halftone_fmt SYSTEM INTERFACE $<TARGET_PROPERTY:fmt::fmt-header-only,INTERFACE_INCLUDE_DIRECTORIES>)
find_package(nlohmann_json REQUIRED)
find_package(OpenSSL REQUIRED COMPONENTS Crypto)
find_package(Threads REQUIRED)
find_package(ZLIB REQUIRED)

# Batches share what their headers cost. Names in unnamed namespaces must differ within a target for it; files that rather
# keep theirs are compiled alone.
function(halftone_in_batches name)
  set_target_properties(${name} PROPERTIES UNITY_BUILD ${HALFTONE_UNITY} UNITY_BUILD_BATCH_SIZE ${HALFTONE_BATCH})
endfunction()
# For programs that compile some files of a component again with other flags: their definitions are used, though the batch has them too.
set(halftone_first_definition -Wl,--allow-multiple-definition)
macro(halftone_compile_alone)
  set_source_files_properties(${ARGN} PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)
endmacro()

# halftone_compile_quickly(<name>): for code whose speed does not matter, such as the command line: -O1 compiles a fifth faster.
function(halftone_compile_quickly name)
  if(NOT HALFTONE_SANITIZE AND CMAKE_BUILD_TYPE STREQUAL "Release")
    target_compile_options(${name} PRIVATE -O1)
  endif()
endfunction()

# halftone_room(<name> SOURCES … LINKS …): one folder as one static library. LINKS is the layer rule: a component can include only
# the components that it links.
function(halftone_room name)
  cmake_parse_arguments(ROOM "" "" "SOURCES;LINKS" ${ARGN})
  add_library(${name} STATIC ${ROOM_SOURCES})
  target_include_directories(${name} PUBLIC ${PROJECT_SOURCE_DIR}/include ${PROJECT_SOURCE_DIR}/src)
  target_link_libraries(${name} PUBLIC ${ROOM_LINKS} halftone_fmt)
  halftone_in_batches(${name})
  set_property(GLOBAL APPEND PROPERTY HALFTONE_ROOMS ${name})
endfunction()
