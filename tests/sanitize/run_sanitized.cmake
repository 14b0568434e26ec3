# Configures, builds and tests src/ without torch under SANITIZE, in a build folder of its own. Assertions stay on.
execute_process(
  COMMAND ${CMAKE_COMMAND} -S ${SOURCE} -B ${BUILD} -G ${GENERATOR} -DCMAKE_MAKE_PROGRAM=${MAKE_PROGRAM}
    -DCMAKE_CXX_COMPILER=${COMPILER} -DPython3_EXECUTABLE=${PYTHON} -DHALFTONE_TORCH=OFF -DHALFTONE_BENCHMARKS=OFF
    -DHALFTONE_SANITIZE=${SANITIZE} -DCMAKE_BUILD_TYPE=Release "-DCMAKE_CXX_FLAGS_RELEASE=-O1 -g1"
  COMMAND_ERROR_IS_FATAL ANY)
execute_process(COMMAND ${CMAKE_COMMAND} --build ${BUILD} COMMAND_ERROR_IS_FATAL ANY)
# Room by room: what tests/ holds looks at the source tree or starts builds, and the outer run does that already.
foreach(room base archive cpu kernels)
  execute_process(
    COMMAND ${CMAKE_COMMAND} -E env UBSAN_OPTIONS=print_stacktrace=1 ASAN_OPTIONS=detect_leaks=1
      ${CMAKE_CTEST_COMMAND} --test-dir ${BUILD}/src/${room} --output-on-failure --no-tests=ignore -LE long
    COMMAND_ERROR_IS_FATAL ANY)
endforeach()
