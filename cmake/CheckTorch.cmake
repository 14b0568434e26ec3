# Stops with a clear message when the torch that was found is not the pinned CPU build. Shared by our build and by the
# installed package configuration.
if(NOT HALFTONE_TORCH_VERSION)
  set(HALFTONE_TORCH_VERSION 2.13.0)
endif()
string(REGEX MATCH "^[0-9]+\\.[0-9]+\\.[0-9]+" halftone_found_torch "${Torch_VERSION}")
if(NOT halftone_found_torch STREQUAL HALFTONE_TORCH_VERSION)
  message(FATAL_ERROR "Halftone needs torch ${HALFTONE_TORCH_VERSION} exactly; found ${Torch_VERSION} in ${Torch_DIR}.")
endif()
if(TARGET torch_cuda OR TARGET torch_hip)
  message(FATAL_ERROR "Halftone needs a CPU build of torch ${HALFTONE_TORCH_VERSION}; the one in ${Torch_DIR} is a GPU build.")
endif()
