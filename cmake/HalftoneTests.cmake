# What test programs share: halftone_test(), and headers that are parsed once for all of them.
if(NOT HALFTONE_TESTS)
  return()
endif()
find_package(GTest REQUIRED)

# Assertions are expanded by the thousand and run once: -O1 compiles them a quarter faster. (-O0 would do it faster still, but the
# linker takes the first copy of an inline function, a test's, for the library's code too.)
set(halftone_test_options -fPIC)
if(NOT HALFTONE_SANITIZE AND CMAKE_BUILD_TYPE STREQUAL "Release")
  list(APPEND halftone_test_options -O1)
endif()

# halftone_test_headers(<name> [MODULES]): a program that knows torch takes it, GoogleTest and JSON from a precompiled header; with
# MODULES torch/nn/module.h too. Two headers and not one with all of torch/torch.h, because a larger one costs more in each file that
# takes it: an empty file is compiled in 1.2 s with the first, in 2.5 s with the second, in 5 s with torch/torch.h.
function(halftone_test_headers name)
  cmake_parse_arguments(HEADERS "MODULES" "" "" ${ARGN})
  # The flags and macros of the header.
  set_target_properties(${name} PROPERTIES POSITION_INDEPENDENT_CODE OFF)
  target_compile_options(${name} PRIVATE ${halftone_test_options})
  target_compile_definitions(${name} PRIVATE $<TARGET_PROPERTY:GTest::gtest,INTERFACE_COMPILE_DEFINITIONS>)
  target_compile_options(${name} PRIVATE $<TARGET_PROPERTY:GTest::gtest,INTERFACE_COMPILE_OPTIONS>)
  if(HEADERS_MODULES)
    target_precompile_headers(${name} REUSE_FROM halftone_module_test_headers)
  else()
    target_precompile_headers(${name} REUSE_FROM halftone_graph_test_headers)
  endif()
endfunction()

if(HALFTONE_TORCH)
  file(WRITE ${PROJECT_BINARY_DIR}/test_headers.cpp "// Only its precompiled header is of interest.\n")
  foreach(kind graph module)
    add_library(halftone_${kind}_test_headers OBJECT EXCLUDE_FROM_ALL ${PROJECT_BINARY_DIR}/test_headers.cpp)
    target_link_libraries(halftone_${kind}_test_headers PRIVATE halftone_torch halftone_fmt nlohmann_json::nlohmann_json GTest::gmock)
    target_compile_options(halftone_${kind}_test_headers PRIVATE ${halftone_test_options})
    set_target_properties(halftone_${kind}_test_headers PROPERTIES POSITION_INDEPENDENT_CODE OFF)
    target_precompile_headers(halftone_${kind}_test_headers PRIVATE <ATen/core/Tensor.h> <ATen/core/ivalue.h>
      <ATen/core/dispatch/Dispatcher.h> <gmock/gmock.h> <gtest/gtest.h> <nlohmann/json.hpp> <fmt/format.h> <fmt/ranges.h>)
  endforeach()
  target_precompile_headers(halftone_module_test_headers PRIVATE <torch/nn/module.h>)
endif()

# Programs that know torch, and only they, take this object in: it seeds torch's generators.
if(HALFTONE_TORCH)
  add_library(halftone_test_seed OBJECT EXCLUDE_FROM_ALL ${PROJECT_SOURCE_DIR}/tests/seed/test_seed.cpp)
  target_link_libraries(halftone_test_seed PRIVATE halftone_torch GTest::gtest)
  halftone_test_headers(halftone_test_seed)
endif()

# halftone_test(<name> SOURCES … LINKS … [LABELS …] [TIMEOUT s]): one GoogleTest program, one ctest entry.
function(halftone_test name)
  cmake_parse_arguments(TEST "" "TIMEOUT" "SOURCES;LINKS;LABELS" ${ARGN})
  add_executable(${name} ${TEST_SOURCES})
  target_link_libraries(${name} PRIVATE ${TEST_LINKS} GTest::gmock GTest::gtest_main)
  set_target_properties(${name} PROPERTIES POSITION_INDEPENDENT_CODE OFF)
  target_compile_options(${name} PRIVATE ${halftone_test_options})
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
