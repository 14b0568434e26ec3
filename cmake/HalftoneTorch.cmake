# Finds libtorch and defines halftone_torch, which every component that uses torch links.
if(NOT HALFTONE_TORCH)
  return()
endif()
if(NOT Python3_EXECUTABLE AND EXISTS ${PROJECT_SOURCE_DIR}/.venv/bin/python)
  set(Python3_EXECUTABLE ${PROJECT_SOURCE_DIR}/.venv/bin/python)
endif()
set(HALFTONE_TORCH_PREFIX "" CACHE PATH "The torch to build with: the folder with its include/ and lib/; empty: Python's")
find_package(Python3 REQUIRED COMPONENTS Interpreter)
include(FindHalftoneTorch)
if(halftone_torch_problem)
  message(FATAL_ERROR " ${halftone_torch_problem}")  # the space: CMake leaves such a line in one piece
endif()
message(STATUS "torch ${halftone_torch_version}: ${halftone_torch_prefix}")
halftone_torch_of_python(torch_of_python)
if(NOT torch_of_python STREQUAL halftone_torch_prefix)
  message(STATUS "tests that compare with Python use another torch: ${torch_of_python}")
endif()
find_package(OpenMP REQUIRED)

# OpenMP, because at::parallel_for is an inline template: a file compiled without -fopenmp runs it in one thread, silently.
# As flags, not as OpenMP::OpenMP_CXX: that names the compiler's libgomp by its path, and CMake warns for every program that
# torch's own copy hides it. Both have one name, and a process loads one of them.
add_library(halftone_torch INTERFACE)
target_link_libraries(halftone_torch INTERFACE Halftone::torch)
separate_arguments(openmp_flags UNIX_COMMAND "${OpenMP_CXX_FLAGS}")
target_compile_options(halftone_torch INTERFACE ${openmp_flags})
target_link_options(halftone_torch INTERFACE ${openmp_flags})

# halftone_test() asks a program whether it knows torch.
set_target_properties(halftone_torch PROPERTIES COMPATIBLE_INTERFACE_BOOL HALFTONE_KNOWS_TORCH INTERFACE_HALFTONE_KNOWS_TORCH ON)
