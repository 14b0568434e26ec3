# Configures and builds the fuzz targets with clang, in a build folder of their own.
find_program(clang NAMES ${COMPILER})
if(NOT clang)
  message(FATAL_ERROR "The fuzz tests need ${COMPILER}, which is not installed. Run `scripts/setup test` (Debian: apt-get install "
    "clang-14), give -DHALFTONE_FUZZ_COMPILER=<a clang++ with libFuzzer>, or switch them off with -DHALFTONE_FUZZ_TESTS=OFF.")
endif()
execute_process(
  COMMAND ${CMAKE_COMMAND} -S ${SOURCE} -B ${BUILD} -G ${GENERATOR} -DCMAKE_MAKE_PROGRAM=${MAKE_PROGRAM}
    -DCMAKE_CXX_COMPILER=${clang} -DPython3_EXECUTABLE=${PYTHON} -DHALFTONE_TORCH=OFF -DHALFTONE_FUZZ=ON
    -DHALFTONE_SANITIZE=fuzzer-no-link,address,undefined -DCMAKE_BUILD_TYPE=Release
    "-DCMAKE_CXX_FLAGS_RELEASE=-O1 -gline-tables-only"
  COMMAND_ERROR_IS_FATAL ANY)
execute_process(COMMAND ${CMAKE_COMMAND} --build ${BUILD} --target fuzzers COMMAND_ERROR_IS_FATAL ANY)
