# Compiler settings and the two functions every folder uses: halftone_room() and halftone_test().
set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
set(CMAKE_RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/bin)
if(NOT CMAKE_BUILD_TYPE)
  set(CMAKE_BUILD_TYPE Release)
endif()

find_program(CCACHE ccache)
if(CCACHE AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  # The sloppiness lets ccache serve files that use a precompiled header.
  set(CMAKE_CXX_COMPILER_LAUNCHER ${CMAKE_COMMAND} -E env
      CCACHE_SLOPPINESS=pch_defines,time_macros,include_file_mtime,include_file_ctime ${CCACHE})
  add_compile_options($<$<CXX_COMPILER_ID:GNU>:-fpch-preprocess>)
endif()

add_compile_options(-Wall -Wextra -Wno-unused-parameter -Wno-missing-field-initializers -fvisibility-inlines-hidden)
if(HALFTONE_SANITIZE)
  add_compile_options(-fsanitize=${HALFTONE_SANITIZE} -fno-omit-frame-pointer -fno-sanitize-recover=all)
  add_link_options(-fsanitize=${HALFTONE_SANITIZE})
endif()

# fmt is used header-only: torch carries another version of it, and the two must never meet in the linker. Builds without
# torch take the compiled one, which makes a sanitized file compile up to four times as fast.
find_package(fmt REQUIRED)
set(halftone_fmt $<IF:$<BOOL:${HALFTONE_TORCH}>,fmt::fmt-header-only,fmt::fmt>)
find_package(nlohmann_json REQUIRED)
find_package(OpenSSL REQUIRED COMPONENTS Crypto)
find_package(Threads REQUIRED)
find_package(GTest REQUIRED)

# Batches share what their headers cost. Names in unnamed namespaces must differ within a target for it; files that rather
# keep theirs are compiled alone.
function(halftone_in_batches name)
  set_target_properties(${name} PROPERTIES UNITY_BUILD ${HALFTONE_UNITY} UNITY_BUILD_BATCH_SIZE 8)
endfunction()
# For programs that compile some of a room's files again with other flags: theirs count, the batch has them too.
set(halftone_first_definition -Wl,--allow-multiple-definition)
macro(halftone_compile_alone)
  set_source_files_properties(${ARGN} PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)
endmacro()

# halftone_room(<name> SOURCES … LINKS …): one folder as one static library. LINKS is the layer rule: a room can include
# only the rooms it links.
function(halftone_room name)
  cmake_parse_arguments(ROOM "" "" "SOURCES;LINKS" ${ARGN})
  add_library(${name} STATIC ${ROOM_SOURCES})
  target_include_directories(${name} PUBLIC ${PROJECT_SOURCE_DIR}/include ${PROJECT_SOURCE_DIR}/src)
  target_link_libraries(${name} PUBLIC ${ROOM_LINKS} ${halftone_fmt})
  halftone_in_batches(${name})
  set_property(GLOBAL APPEND PROPERTY HALFTONE_ROOMS ${name})
endfunction()

# halftone_test(<name> SOURCES … LINKS … [LABELS …] [TIMEOUT s]): one GoogleTest program, one ctest entry.
function(halftone_test name)
  cmake_parse_arguments(TEST "" "TIMEOUT" "SOURCES;LINKS;LABELS" ${ARGN})
  add_executable(${name} ${TEST_SOURCES})
  target_link_libraries(${name} PRIVATE ${TEST_LINKS} GTest::gmock GTest::gtest_main)
  # The code-generation flags of the rooms, so that a test can reuse a room's precompiled header.
  set_target_properties(${name} PROPERTIES POSITION_INDEPENDENT_CODE OFF)
  target_compile_options(${name} PRIVATE -fPIC)
  halftone_in_batches(${name})
  if(HALFTONE_TORCH)
    target_sources(${name} PRIVATE
      "$<$<BOOL:$<TARGET_PROPERTY:${name},HALFTONE_KNOWS_TORCH>>:$<TARGET_OBJECTS:halftone_test_seed>>")
  endif()
  add_test(NAME ${name} COMMAND ${name})
  if(NOT TEST_TIMEOUT)
    set(TEST_TIMEOUT 300)
  endif()
  set_tests_properties(${name} PROPERTIES TIMEOUT ${TEST_TIMEOUT} LABELS "${TEST_LABELS}")
endfunction()
