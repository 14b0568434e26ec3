# Configures and builds hostile_files and the whole library under sanitizers, in a build folder of its own: the preset asan-torch.
execute_process(
  COMMAND ${CMAKE_COMMAND} --preset asan-torch -S ${SOURCE} -B ${BUILD} -DCMAKE_MAKE_PROGRAM=${MAKE_PROGRAM}
    -DCMAKE_CXX_COMPILER=${COMPILER} -DPython3_EXECUTABLE=${PYTHON} -DHALFTONE_TORCH_PREFIX=${TORCH}
  WORKING_DIRECTORY ${SOURCE} COMMAND_ERROR_IS_FATAL ANY)
execute_process(COMMAND ${CMAKE_COMMAND} --build ${BUILD} --target hostile_files COMMAND_ERROR_IS_FATAL ANY)
