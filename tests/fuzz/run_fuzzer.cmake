# Runs one fuzz target on RUNS inputs (0: only what is kept in the repository) and fails unless all were run in bounds:
# 1 GiB of memory, 10 s and 4 KiB an input, no leak.
file(MAKE_DIRECTORY ${WORK}/corpus)
execute_process(
  COMMAND ${FUZZER} -runs=${RUNS} -max_len=4096 -rss_limit_mb=1024 -timeout=10 -artifact_prefix=${WORK}/
    ${WORK}/corpus ${SEEDS} ${PAST}
  RESULT_VARIABLE result OUTPUT_VARIABLE log ERROR_VARIABLE log)
if(NOT result EQUAL 0)
  message(FATAL_ERROR "${log}\nThe failing input is in ${WORK}; once its cause is mended, keep it in ${PAST}.")
endif()
if(NOT log MATCHES "Done ([0-9]+) runs" OR CMAKE_MATCH_1 LESS RUNS)
  message(FATAL_ERROR "${log}\nfewer than ${RUNS} inputs were run")
endif()
message(STATUS "${CMAKE_MATCH_0}")
