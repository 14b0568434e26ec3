# What install rules and packages share. Everything is installed by relative paths, so that the folder can be moved. Nothing
# installed holds a path to torch: bin/halftone is a script (tools/halftone/launcher.in) that looks for torch when it is
# started, and find_package(Halftone) looks for it when a program is configured.
include(GNUInstallDirs)

# Torch's macros put __FILE__ into messages. These options make it "src/…" and "c10/…", without folders of the machine that
# built it. Torch's comes last, and counts, where torch is below our sources.
add_compile_options(-fmacro-prefix-map=${PROJECT_SOURCE_DIR}/=)
if(HALFTONE_TORCH)
  # GCC may spell a header of the system without the links in its path.
  file(REAL_PATH ${halftone_torch_prefix} halftone_torch_real_prefix)
  add_compile_options(-fmacro-prefix-map=${halftone_torch_real_prefix}/include/= -fmacro-prefix-map=${halftone_torch_prefix}/include/=)
endif()

# halftone_relative(<variable> <from> <to>): the way from one install folder to another, "../lib".
function(halftone_relative variable from to)
  file(RELATIVE_PATH way ${CMAKE_INSTALL_FULL_${from}} ${CMAKE_INSTALL_FULL_${to}})
  set(${variable} ${way} PARENT_SCOPE)
endfunction()
