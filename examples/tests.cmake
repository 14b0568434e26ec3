# Tests of the examples.
# Where the default model is: asked once, from the Python that also exports it. Empty where it is not installed.
execute_process(
  COMMAND ${Python3_EXECUTABLE} -c
          "import sys; sys.path.insert(0, 'scripts'); import export_minilm as e; print(e.package_dir() or '')"
  WORKING_DIRECTORY ${PROJECT_SOURCE_DIR} OUTPUT_VARIABLE MINILM_DIR OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)

# Tests of the exported model must not skip themselves in a clean checkout: the file is made first, where the weights are there.
if(MINILM_DIR)
  add_test(NAME minilm_export COMMAND ${Python3_EXECUTABLE} ${PROJECT_SOURCE_DIR}/scripts/export_minilm.py
                                      -o ${CMAKE_BINARY_DIR}/models/minilm.pt2)
  set_tests_properties(minilm_export PROPERTIES FIXTURES_SETUP minilm TIMEOUT 300 LABELS examples)
endif()

halftone_test(minilm_tokenizer_test SOURCES minilm/tokenizer_test.cpp
              LINKS minilm_tokenizer nlohmann_json::nlohmann_json LABELS examples)
target_compile_definitions(minilm_tokenizer_test PRIVATE EXAMPLES_DIR="${CMAKE_CURRENT_SOURCE_DIR}" MINILM_DIR="${MINILM_DIR}")

add_test(NAME minilm_encoder_test COMMAND ${Python3_EXECUTABLE} ${CMAKE_CURRENT_SOURCE_DIR}/minilm/encoder_test.py
                                          $<TARGET_FILE:minilm_hidden_states>)
set_tests_properties(minilm_encoder_test PROPERTIES TIMEOUT 120 LABELS examples)

foreach(part quantize capture training)
  halftone_test(minilm_${part}_test SOURCES minilm/${part}_test.cpp LINKS minilm_encoder LABELS examples TIMEOUT 120)
  target_compile_definitions(minilm_${part}_test PRIVATE MINILM_DIR="${MINILM_DIR}"
    MINILM_PT2="${CMAKE_BINARY_DIR}/models/minilm.pt2" EXAMPLES_DIR="${CMAKE_CURRENT_SOURCE_DIR}")
  halftone_test_headers(minilm_${part}_test MODULES)
endforeach()
# It has a limit of time, and threads that wait by spinning cost a multiple of it where the cores are shared.
set_tests_properties(minilm_capture_test PROPERTIES ENVIRONMENT OMP_WAIT_POLICY=passive FIXTURES_REQUIRED minilm)

add_test(NAME embed_sentences_test COMMAND ${Python3_EXECUTABLE} ${CMAKE_CURRENT_SOURCE_DIR}/embed_sentences_test.py
                                           $<TARGET_FILE:embed_sentences> $<TARGET_FILE:halftone_cli>)

set(digits ${PROJECT_SOURCE_DIR}/tests/accuracy/data/digits.safetensors)
add_test(NAME train_and_ship COMMAND train_and_ship ${digits} ${CMAKE_CURRENT_BINARY_DIR}/digits.ht)
add_test(NAME compiled_training COMMAND compiled_training ${digits})
add_test(NAME qat_digits COMMAND qat_digits ${digits} ${CMAKE_CURRENT_BINARY_DIR}/digits_int4.ht)
add_test(NAME static_int8 COMMAND static_int8 ${digits} ${CMAKE_CURRENT_BINARY_DIR}/digits_int8.ht)
set_tests_properties(embed_sentences_test train_and_ship compiled_training qat_digits static_int8
                     PROPERTIES TIMEOUT 120 LABELS examples)

add_test(NAME deploy COMMAND deploy ${PROJECT_SOURCE_DIR}/tests/golden/v2_backend_int8dq.ht)
set_tests_properties(deploy PROPERTIES TIMEOUT 60 LABELS examples PASS_REGULAR_EXPRESSION "\\[2, 8\\]")

# first_steps: each runs, and its exit code says whether the answer was right.
set(golden ${PROJECT_SOURCE_DIR}/tests/golden)
set(first_quantize_arguments ${golden}/v2_graph_fp32.ht ${CMAKE_CURRENT_BINARY_DIR}/first_int8.ht)
set(first_tune_arguments ${golden}/v2_graph_fp32.ht ${CMAKE_CURRENT_BINARY_DIR}/first_tuned.ht)
set(first_deploy_arguments ${golden}/v2_backend_int8dq.ht)
set(first_diagnose_arguments ${golden}/v2_graph_fp32.ht)
set(first_load_arguments ${PROJECT_SOURCE_DIR}/src/capture/testdata/small.pt2)
foreach(step IN LISTS first_steps)
  add_test(NAME first_${step} COMMAND first_${step} ${first_${step}_arguments})
  set_tests_properties(first_${step} PROPERTIES TIMEOUT 60 LABELS examples)
endforeach()
set_tests_properties(first_tune PROPERTIES ENVIRONMENT HALFTONE_BUSY=ignore)
