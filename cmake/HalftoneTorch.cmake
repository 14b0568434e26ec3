# Finds libtorch (asked from the Python that CMake is given) and checks that it is the one this code was written for.
if(NOT HALFTONE_TORCH)
  return()
endif()
set(HALFTONE_TORCH_VERSION 2.13.0)
if(NOT Python3_EXECUTABLE AND EXISTS ${PROJECT_SOURCE_DIR}/.venv/bin/python)
  set(Python3_EXECUTABLE ${PROJECT_SOURCE_DIR}/.venv/bin/python)
endif()
find_package(Python3 REQUIRED COMPONENTS Interpreter)
if(NOT Torch_DIR)
  execute_process(
    COMMAND ${Python3_EXECUTABLE} -c "import torch; print(torch.utils.cmake_prefix_path)"
    OUTPUT_VARIABLE torch_prefix OUTPUT_STRIP_TRAILING_WHITESPACE RESULT_VARIABLE failed ERROR_QUIET)
  if(failed)
    message(FATAL_ERROR "${Python3_EXECUTABLE} has no torch. Run `make deps`, or give -DTorch_DIR=….")
  endif()
  list(APPEND CMAKE_PREFIX_PATH ${torch_prefix})
endif()
find_package(Torch REQUIRED)
include(${CMAKE_CURRENT_LIST_DIR}/CheckTorch.cmake)
find_package(OpenMP REQUIRED)

# What every room that knows torch links. OpenMP, because at::parallel_for is an inline template: a file compiled without
# -fopenmp runs it in one thread, silently.
add_library(halftone_torch INTERFACE)
target_include_directories(halftone_torch SYSTEM INTERFACE ${TORCH_INCLUDE_DIRS})
target_link_libraries(halftone_torch INTERFACE ${TORCH_LIBRARIES} OpenMP::OpenMP_CXX)
separate_arguments(torch_flags UNIX_COMMAND "${TORCH_CXX_FLAGS}")
target_compile_options(halftone_torch INTERFACE ${torch_flags})

# halftone_test() asks a program whether it knows torch.
set_target_properties(halftone_torch PROPERTIES COMPATIBLE_INTERFACE_BOOL HALFTONE_KNOWS_TORCH INTERFACE_HALFTONE_KNOWS_TORCH ON)
