# Finds libtorch for our build and for find_package(Halftone): this file is installed beside HalftoneConfig.cmake.
#
# Torch's own CMake package is not used. In a CUDA wheel it asks for CUDA's toolkit, which Halftone does not need: only
# libtorch_cpu and libc10 are linked, and what libtorch_cpu needs in a CUDA wheel (libcudart, libcupti) is found by its own
# RPATH in the folders that pip installs beside torch.
#
# Where it looks, the first that has torch:
#   HALFTONE_TORCH_PREFIX  CMake or environment variable: the folder with include/ and lib/ (a libtorch archive, a wheel's
#                          site-packages/torch), or a folder above it (site-packages, a virtual environment)
#   Torch_DIR, CMAKE_PREFIX_PATH  as find_package(Torch) is told
#   Python                 Python3_EXECUTABLE, an active virtual environment, python3
#
# Sets halftone_torch_prefix and halftone_torch_version, and defines Halftone::torch. What is wrong goes into
# halftone_torch_problem as one line: our build stops with it, find_package(Halftone) gives it as its reason.
set(halftone_torch_oldest 2.13)
set(halftone_torch_too_new 2.16)
set(halftone_torch_problem "")
set(halftone_torch_prefix "")
set(halftone_torch_version "")

# Sets `result` to the folder of the torch that is at `folder`, or to nothing.
function(halftone_torch_at folder result)
  set(${result} "" PARENT_SCOPE)
  file(GLOB environment LIST_DIRECTORIES true "${folder}/lib/python3*/site-packages/torch")
  # ../.. and ../../..: torch.utils.cmake_prefix_path is torch/share/cmake, Torch_DIR is torch/share/cmake/Torch.
  foreach(candidate "${folder}" "${folder}/torch" "${folder}/libtorch" ${environment} "${folder}/../.." "${folder}/../../..")
    if(EXISTS "${candidate}/include/torch/csrc/api/include/torch/version.h" AND IS_DIRECTORY "${candidate}/lib")
      get_filename_component(candidate "${candidate}" ABSOLUTE)
      set(${result} "${candidate}" PARENT_SCOPE)
      return()
    endif()
  endforeach()
endfunction()

# Asks Python where torch is. Does not import it: that takes seconds, and a file is all we want. The current folder is no place to look:
# it may have a folder named torch.
function(halftone_torch_of_python result)
  set(${result} "" PARENT_SCOPE)
  set(python "${Python3_EXECUTABLE}")
  if(NOT python AND EXISTS "$ENV{VIRTUAL_ENV}/bin/python")
    set(python "$ENV{VIRTUAL_ENV}/bin/python")
  endif()
  if(NOT python)
    find_program(python NAMES python3 NO_CACHE)
  endif()
  if(NOT python)
    return()
  endif()
  execute_process(
    COMMAND "${python}" -c
      "import sys; sys.path[:] = list(filter(None, sys.path)); import importlib.util as u; print(u.find_spec('torch').submodule_search_locations[0])"
    OUTPUT_VARIABLE folder OUTPUT_STRIP_TRAILING_WHITESPACE RESULT_VARIABLE failed ERROR_QUIET)
  if(NOT failed)
    halftone_torch_at("${folder}" found)
    set(${result} "${found}" PARENT_SCOPE)
  endif()
endfunction()

# Sets `result` to "2.15.0". torch/version.h has had the numbers itself, later it includes headeronly/version.h.
function(halftone_torch_read_version prefix result)
  set(version "")
  foreach(header headeronly/version.h csrc/api/include/torch/version.h)
    if(NOT version AND EXISTS "${prefix}/include/torch/${header}")
      file(READ "${prefix}/include/torch/${header}" text)
      if(text MATCHES "TORCH_VERSION_MAJOR ([0-9]+).*TORCH_VERSION_MINOR ([0-9]+).*TORCH_VERSION_PATCH ([0-9]+)")
        set(version "${CMAKE_MATCH_1}.${CMAKE_MATCH_2}.${CMAKE_MATCH_3}")
      endif()
    endif()
  endforeach()
  set(${result} "${version}" PARENT_SCOPE)
endfunction()

# What torch's own CMake files tell a compiler. USE_RPC changes the size of classes in torch's headers.
function(halftone_torch_read_flags prefix definitions options)
  set(${definitions} "" PARENT_SCOPE)
  set(${options} "" PARENT_SCOPE)
  if(EXISTS "${prefix}/share/cmake/Caffe2/Caffe2Targets.cmake")
    file(READ "${prefix}/share/cmake/Caffe2/Caffe2Targets.cmake" text)
    if(text MATCHES "set_target_properties\\(torch_cpu PROPERTIES[^)]*INTERFACE_COMPILE_DEFINITIONS \"([A-Za-z0-9_=;]*)\"")
      set(${definitions} "${CMAKE_MATCH_1}" PARENT_SCOPE)
    endif()
  endif()
  if(EXISTS "${prefix}/share/cmake/Torch/TorchConfig.cmake")
    file(READ "${prefix}/share/cmake/Torch/TorchConfig.cmake" text)
    if(text MATCHES "set\\(TORCH_CXX_FLAGS \"(-D_GLIBCXX_USE_CXX11_ABI=[01])\"\\)")
      set(${options} "${CMAKE_MATCH_1}" PARENT_SCOPE)
    endif()
  endif()
endfunction()

set(halftone_torch_given "${HALFTONE_TORCH_PREFIX}")
if(NOT halftone_torch_given)
  set(halftone_torch_given "$ENV{HALFTONE_TORCH_PREFIX}")
endif()
if(halftone_torch_given)
  halftone_torch_at("${halftone_torch_given}" halftone_torch_prefix)
  if(NOT halftone_torch_prefix)
    set(halftone_torch_problem
      "HALFTONE_TORCH_PREFIX=${halftone_torch_given} has no torch: no include/torch and lib/ there.")
    return()
  endif()
endif()

file(TO_CMAKE_PATH "$ENV{CMAKE_PREFIX_PATH}" halftone_torch_environment)
foreach(halftone_torch_folder ${Torch_DIR} $ENV{Torch_DIR} ${CMAKE_PREFIX_PATH} ${halftone_torch_environment})
  if(NOT halftone_torch_prefix)
    halftone_torch_at("${halftone_torch_folder}" halftone_torch_prefix)
  endif()
endforeach()
if(NOT halftone_torch_prefix)
  halftone_torch_of_python(halftone_torch_prefix)
endif()
if(NOT halftone_torch_prefix)
  set(halftone_torch_problem
    "Halftone needs torch ${halftone_torch_oldest} or newer and found none. `pip install torch`, or give its folder: -DHALFTONE_TORCH_PREFIX=DIR.")
  return()
endif()

halftone_torch_read_version("${halftone_torch_prefix}" halftone_torch_version)
# Set by the installed package: libtorch promises no binary compatibility between releases.
if(HALFTONE_BUILT_WITH_TORCH AND NOT halftone_torch_version STREQUAL HALFTONE_BUILT_WITH_TORCH)
  set(halftone_torch_problem
    "This Halftone was built with torch ${HALFTONE_BUILT_WITH_TORCH} and needs it exactly; found ${halftone_torch_version} in ${halftone_torch_prefix}. Give another with -DHALFTONE_TORCH_PREFIX=DIR.")
  return()
endif()
if(halftone_torch_version VERSION_LESS halftone_torch_oldest OR NOT halftone_torch_version VERSION_LESS halftone_torch_too_new)
  set(halftone_torch_problem
    "Halftone builds with torch ${halftone_torch_oldest} to 2.15; found ${halftone_torch_version} in ${halftone_torch_prefix}. Give another with -DHALFTONE_TORCH_PREFIX=DIR.")
  return()
endif()
foreach(halftone_torch_library torch_cpu c10)
  if(NOT EXISTS "${halftone_torch_prefix}/lib/lib${halftone_torch_library}.so")
    set(halftone_torch_problem
      "torch ${halftone_torch_version} in ${halftone_torch_prefix} has no lib/lib${halftone_torch_library}.so: Halftone needs a build with shared libraries.")
    return()
  endif()
endforeach()

if(NOT TARGET Halftone::torch)
  foreach(halftone_torch_library torch_cpu c10)
    add_library(Halftone::${halftone_torch_library} SHARED IMPORTED)
    set_target_properties(Halftone::${halftone_torch_library} PROPERTIES
      IMPORTED_LOCATION "${halftone_torch_prefix}/lib/lib${halftone_torch_library}.so"
      IMPORTED_SONAME "lib${halftone_torch_library}.so")
  endforeach()
  halftone_torch_read_flags("${halftone_torch_prefix}" halftone_torch_definitions halftone_torch_options)
  # Distributions whose compilers link with --as-needed would drop libtorch_cpu where a program calls torch only through
  # libhalftone, and the program would then not find it.
  set(halftone_torch_link_options LINKER:--no-as-needed)
  # Where the linker, too, finds what libtorch_cpu needs in a CUDA wheel.
  file(GLOB halftone_torch_folders LIST_DIRECTORIES true "${halftone_torch_prefix}/../nvidia/*/lib")
  foreach(halftone_torch_folder ${halftone_torch_folders})
    get_filename_component(halftone_torch_folder "${halftone_torch_folder}" ABSOLUTE)
    list(APPEND halftone_torch_link_options "LINKER:-rpath-link,${halftone_torch_folder}")
  endforeach()
  add_library(Halftone::torch INTERFACE IMPORTED)
  set_target_properties(Halftone::torch PROPERTIES
    INTERFACE_INCLUDE_DIRECTORIES "${halftone_torch_prefix}/include;${halftone_torch_prefix}/include/torch/csrc/api/include"
    INTERFACE_COMPILE_DEFINITIONS "${halftone_torch_definitions}"
    INTERFACE_COMPILE_OPTIONS "${halftone_torch_options}"
    INTERFACE_COMPILE_FEATURES cxx_std_20
    INTERFACE_LINK_OPTIONS "${halftone_torch_link_options}"
    INTERFACE_LINK_LIBRARIES "Halftone::torch_cpu;Halftone::c10")
endif()
