# Configures, builds and tests src/ without torch under SANITIZE, in a build folder of its own. Assertions stay on. Of PROGRAMS, if
# there are any, only those are built and run. -Og: the sanitized test files compile in 60 % of the time of -O1, with every check.
execute_process(
  COMMAND ${CMAKE_COMMAND} -S ${SOURCE} -B ${BUILD} -G ${GENERATOR} -DCMAKE_MAKE_PROGRAM=${MAKE_PROGRAM}
    -DCMAKE_CXX_COMPILER=${COMPILER} -DPython3_EXECUTABLE=${PYTHON} -DHALFTONE_TORCH=OFF -DHALFTONE_BENCHMARKS=OFF
    -DHALFTONE_SANITIZE=${SANITIZE} -DCMAKE_BUILD_TYPE=Release "-DCMAKE_CXX_FLAGS_RELEASE=-Og -g1"
  COMMAND_ERROR_IS_FATAL ANY)
set(ENV{UBSAN_OPTIONS} print_stacktrace=1)
set(ENV{ASAN_OPTIONS} detect_leaks=1)
set(ENV{TSAN_OPTIONS} halt_on_error=1)
if(PROGRAMS)
  execute_process(COMMAND ${CMAKE_COMMAND} --build ${BUILD} --target ${PROGRAMS} COMMAND_ERROR_IS_FATAL ANY)
  foreach(program ${PROGRAMS})
    execute_process(COMMAND ${BUILD}/bin/${program} COMMAND_ERROR_IS_FATAL ANY)
  endforeach()
  return()
endif()
execute_process(COMMAND ${CMAKE_COMMAND} --build ${BUILD} COMMAND_ERROR_IS_FATAL ANY)
cmake_host_system_information(RESULT cores QUERY NUMBER_OF_LOGICAL_CORES)
# Component by component: the tests in tests/ read the source tree or start builds, and the outer run does that already.
foreach(room base archive text cpu kernels bench)
  execute_process(
    COMMAND ${CMAKE_CTEST_COMMAND} --test-dir ${BUILD}/src/${room} --output-on-failure --no-tests=ignore -LE long
      --parallel ${cores}
    COMMAND_ERROR_IS_FATAL ANY)
endforeach()
