# halftone_kernel_sources(SOURCES … AVX2 … AVX512VNNI … EMULATED …): adds one operation's files to the component. Files of an
# instruction set get its flags; EMULATED files are compiled a second time through SIMDe, for tests only.
set(HALFTONE_AVX2_FLAGS -mavx2 -mfma -mf16c CACHE INTERNAL "")
set(HALFTONE_AVX512VNNI_FLAGS ${HALFTONE_AVX2_FLAGS} -mavx512f -mavx512bw -mavx512vl -mavx512dq -mavx512vnni -mprefer-vector-width=512)

function(halftone_kernel_sources)
  cmake_parse_arguments(KERNEL "" "" "SOURCES;AVX2;AVX512VNNI;EMULATED" ${ARGN})
  foreach(list SOURCES AVX2 AVX512VNNI EMULATED)
    list(TRANSFORM KERNEL_${list} PREPEND ${CMAKE_CURRENT_SOURCE_DIR}/)
  endforeach()
  target_sources(halftone_kernels PRIVATE ${KERNEL_SOURCES})
  if(HALFTONE_X86)
    target_sources(halftone_kernels PRIVATE ${KERNEL_AVX2} ${KERNEL_AVX512VNNI})
    set_source_files_properties(${KERNEL_AVX2} TARGET_DIRECTORY halftone_kernels
      PROPERTIES COMPILE_OPTIONS "${HALFTONE_AVX2_FLAGS}")
    set_source_files_properties(${KERNEL_AVX512VNNI} TARGET_DIRECTORY halftone_kernels
      PROPERTIES COMPILE_OPTIONS "${HALFTONE_AVX512VNNI_FLAGS}")
    if(TARGET halftone_kernels_emulated AND KERNEL_EMULATED)
      target_sources(halftone_kernels_emulated PRIVATE ${KERNEL_EMULATED})
    endif()
  endif()
endfunction()
