# One executable per kind of test, `tests_<kind>`, from every source below tests/<kind>; the kind is the CTest label.
# An executable is several CTest entries, each a share of its cases, so that `ctest -j` has something to balance.
enable_testing()
find_package(GTest REQUIRED)
find_package(PkgConfig REQUIRED)
find_package(Python3 REQUIRED COMPONENTS Interpreter)
pkg_check_modules(Z3 REQUIRED IMPORTED_TARGET z3)

set(TENON_TEST_CACHE ${PROJECT_BINARY_DIR}/test_cache)
# Waiting threads sleep: two tests at a time share the cores.
# TENON_ORACLE: every kernel launched by a test, up to 10^5 elements, runs through the loop interpreter too. Not under a
# sanitizer, which looks for other things than wrong values and would spend most of its time there.
set(oracle 1)
if(TENON_SANITIZE)
  set(oracle 0)
endif()
set(TENON_TEST_ENVIRONMENT TENON_CACHE=${TENON_TEST_CACHE} TENON_ORACLE=${oracle} OMP_WAIT_POLICY=passive
  # The thread sanitizer: tests that fork compute in the child, which it does not like by default; and what it
  # remembers of memory grows with every test, until two entries at a time have taken all that there is.
  TSAN_OPTIONS=suppressions=${PROJECT_SOURCE_DIR}/cmake/tsan_suppressions.txt:die_after_fork=0:memory_limit_mb=6000
  UBSAN_OPTIONS=print_stacktrace=1)
# Seconds for an entry. A sanitizer, which makes everything ten times as slow, is asked for by hand, and left to finish.
set(TENON_TEST_TIMEOUT 600)
set(TENON_LONG_TEST_TIMEOUT 1200)
if(TENON_SANITIZE)
  set(TENON_TEST_TIMEOUT 14400)
  set(TENON_LONG_TEST_TIMEOUT 14400)
endif()
# A debug build also traces the function again at every cached call.
if(CMAKE_BUILD_TYPE STREQUAL "Debug")
  list(APPEND TENON_TEST_ENVIRONMENT TENON_VERIFY_CAPTURE=1)
endif()

add_library(tests_main OBJECT tests/main.cpp)
target_link_libraries(tests_main PUBLIC tenon GTest::gtest GTest::gmock PRIVATE tenon_flags)
target_compile_definitions(tests_main PRIVATE TENON_TEST_CACHE="${TENON_TEST_CACHE}")

# What most tests include, parsed once for those with the same options: gtest, and for those that use tensors, tenon.h.
# -O0: most of a test's time goes into compiling it. -g1: tests look at the places that errors name.
function(tenon_test_options name optimisation)
  target_compile_options(${name} PRIVATE ${optimisation} -g1)
  target_compile_definitions(${name} PRIVATE
    TENON_SOURCE_DIR="${PROJECT_SOURCE_DIR}" TENON_BINARY_DIR="${PROJECT_BINARY_DIR}")
  target_include_directories(${name} PRIVATE ${PROJECT_SOURCE_DIR}/tests)
  target_link_libraries(${name} PRIVATE tests_main tenon_flags)
endfunction()
foreach(optimisation -O0 -O1)
  # A program, as those that share it: GCC wants the same kind of code.
  add_executable(tests_shared${optimisation} tests/empty.cpp)
  tenon_test_options(tests_shared${optimisation} ${optimisation})
  target_precompile_headers(tests_shared${optimisation} PRIVATE
    cmake/precompiled.h <tenon/tenon.h> <gmock/gmock.h> <gtest/gtest.h>)
endforeach()

function(tenon_tests kind optimisation shares)
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS tests/${kind}/*.cpp)
  list(FILTER sources EXCLUDE REGEX "_fuzzer\\.cpp$")
  if(NOT sources)
    return()
  endif()
  set(name tests_${kind})
  add_executable(${name} ${sources})
  tenon_test_options(${name} ${optimisation})
  target_link_libraries(${name} PRIVATE ${ARGN})
  target_precompile_headers(${name} REUSE_FROM tests_shared${optimisation})
  foreach(share RANGE 1 ${shares})
    math(EXPR index "${share} - 1")
    add_test(NAME ${kind}.${share}_of_${shares} COMMAND ${name} --gtest_brief=1)
    set_tests_properties(${kind}.${share}_of_${shares} PROPERTIES LABELS ${kind} TIMEOUT ${TENON_TEST_TIMEOUT}
      ENVIRONMENT "${TENON_TEST_ENVIRONMENT};GTEST_TOTAL_SHARDS=${shares};GTEST_SHARD_INDEX=${index}")
  endforeach()
endfunction()

tenon_tests(unit -O0 6 PkgConfig::Z3 $<TARGET_NAME_IF_EXISTS:generate_api_parts> tests_plain)
# Those of the rooms that call no operators: a new row leaves them alone.
file(GLOB_RECURSE plain_tests CONFIGURE_DEPENDS tests/unit/*.cpp)
list(FILTER plain_tests INCLUDE REGEX "/unit/(support|sym|schema|loop)/")
get_target_property(unit_tests tests_unit SOURCES)
list(REMOVE_ITEM unit_tests ${plain_tests})
set_target_properties(tests_unit PROPERTIES SOURCES "${unit_tests}")
add_library(tests_plain OBJECT ${plain_tests})
tenon_test_options(tests_plain -O0)
target_link_libraries(tests_plain PRIVATE PkgConfig::Z3)
target_precompile_headers(tests_plain PRIVATE cmake/precompiled.h <gmock/gmock.h> <gtest/gtest.h>)
# This one looks at lines through inlined functions, which needs more than -g1.
set_source_files_properties(tests/unit/capture/user_lines_test.cpp PROPERTIES
  COMPILE_OPTIONS "-O2;-g" SKIP_PRECOMPILE_HEADERS ON)
# Extensions as they are written for libtorch: what they may include is the headers of compat/.
file(GLOB extension_sources CONFIGURE_DEPENDS tests/unit/compat/*_extension.cpp tests/unit/compat/probes.cpp)
set_source_files_properties(${extension_sources} PROPERTIES
  INCLUDE_DIRECTORIES ${PROJECT_SOURCE_DIR}/compat SKIP_PRECOMPILE_HEADERS ON)
# A probe does not use what it shows.
set_source_files_properties(tests/unit/compat/probes.cpp PROPERTIES COMPILE_OPTIONS "-Wno-unused;-Wno-shadow")
# Fuzz and ops compute much themselves.
tenon_tests(ops -O1 6)
tenon_tests(golden -O0 2)
tenon_tests(errors -O0 2)
tenon_tests(fuzz -O1 4)
# The samples and the comparisons of the operator test.
target_sources(tests_fuzz PRIVATE tests/ops/samples.cpp tests/ops/sample_rules.cpp
  tests/ops/sample_rules_below.cpp tests/ops/sample_rules_images.cpp tests/ops/sample_rules_matrices.cpp
  tests/ops/sample_rules_families.cpp tests/ops/row_evaluator.cpp)
tenon_tests(seeds -O0 4)
# Document 001 runs the custom operators of document 004 again, with walks captured.
add_test(NAME seeds.custom_operators_with_captured_walks
  COMMAND tests_seeds --gtest_brief=1 --gtest_filter=TestCustomOp.*)
set_tests_properties(seeds.custom_operators_with_captured_walks PROPERTIES LABELS seeds TIMEOUT ${TENON_TEST_TIMEOUT}
  ENVIRONMENT "${TENON_TEST_ENVIRONMENT};TENON_COMPILED_AUTOGRAD=1")

# The examples in the comments of the public headers, and in those that are generated.
set(examples ${PROJECT_SOURCE_DIR}/tools/examples)
file(GLOB_RECURSE public_headers CONFIGURE_DEPENDS include/tenon/*.h)
set(examples_dir ${TENON_GENERATED_DIR}/tests)
file(MAKE_DIRECTORY ${examples_dir})
add_custom_command(OUTPUT ${examples_dir}/examples_headers.cpp
  COMMAND Python3::Interpreter ${examples} extract --out ${examples_dir}/examples_headers.cpp
  DEPENDS ${examples} ${public_headers} COMMENT "Examples of the public headers" VERBATIM)
add_custom_command(OUTPUT ${examples_dir}/examples_operators.cpp
  COMMAND Python3::Interpreter ${examples}
          extract --out ${examples_dir}/examples_operators.cpp ${TENON_GENERATED_HEADERS}
  DEPENDS ${examples} ${TENON_GENERATED_HEADERS} COMMENT "Examples of the operators" VERBATIM)
add_executable(tests_examples ${examples_dir}/examples_headers.cpp ${examples_dir}/examples_operators.cpp)
tenon_test_options(tests_examples -O0)
# An example does not use everything that it shows, and names things as it likes. (Options of a source come last.)
set_source_files_properties(${examples_dir}/examples_headers.cpp ${examples_dir}/examples_operators.cpp PROPERTIES
  COMPILE_OPTIONS "-Wno-shadow;-Wno-unused")
target_precompile_headers(tests_examples REUSE_FROM tests_shared-O0)
add_test(NAME examples COMMAND tests_examples --gtest_brief=1)
set_tests_properties(examples PROPERTIES LABELS examples TIMEOUT ${TENON_TEST_TIMEOUT}
  ENVIRONMENT "${TENON_TEST_ENVIRONMENT}")

# The programs of these pages, as they stand there.
foreach(page getting_started from_pytorch freezing deployment)
  set(source ${examples_dir}/page_${page}.cpp)
  add_custom_command(OUTPUT ${source}
    COMMAND Python3::Interpreter ${PROJECT_SOURCE_DIR}/tools/page ${PROJECT_SOURCE_DIR}/docs/${page}.md --out ${source}
    DEPENDS ${PROJECT_SOURCE_DIR}/tools/page ${PROJECT_SOURCE_DIR}/docs/${page}.md
    COMMENT "The program of docs/${page}.md" VERBATIM)
  tenon_program(page_${page} ${source})
  target_compile_options(page_${page} PRIVATE -O0)
  set_source_files_properties(${source} PROPERTIES COMPILE_OPTIONS "-Wno-shadow;-Wno-unused")
  file(MAKE_DIRECTORY ${PROJECT_BINARY_DIR}/pages)
  add_test(NAME page_${page} COMMAND page_${page} WORKING_DIRECTORY ${PROJECT_BINARY_DIR}/pages)
  set_tests_properties(page_${page} PROPERTIES LABELS examples TIMEOUT ${TENON_TEST_TIMEOUT}
    ENVIRONMENT "${TENON_TEST_ENVIRONMENT}")
endforeach()

# `make seeds` builds this, whether or not a seed has a test yet.
add_custom_target(tests_seeds_if_any)
if(TARGET tests_seeds)
  add_dependencies(tests_seeds_if_any tests_seeds)
endif()

# The tools, and the rules of the repository.
function(tenon_repository_test name)
  add_test(NAME ${name} COMMAND Python3::Interpreter ${ARGN})
  set_tests_properties(${name} PROPERTIES LABELS repository TIMEOUT ${TENON_TEST_TIMEOUT}
    ENVIRONMENT "${TENON_TEST_ENVIRONMENT}")
endfunction()
tenon_repository_test(includes ${PROJECT_SOURCE_DIR}/tools/check_includes)
tenon_repository_test(includes_test ${PROJECT_SOURCE_DIR}/tests/tools/check_includes_test.py)
tenon_repository_test(every_name_has_an_example ${PROJECT_SOURCE_DIR}/tools/examples check)
tenon_repository_test(every_operator_has_an_example
  ${PROJECT_SOURCE_DIR}/tools/examples check ${TENON_GENERATED_HEADERS})
tenon_repository_test(lines_fit ${PROJECT_SOURCE_DIR}/tools/check_lines)
tenon_repository_test(lines_fit_test ${PROJECT_SOURCE_DIR}/tests/tools/check_lines_test.py)
tenon_repository_test(is_formatted ${PROJECT_SOURCE_DIR}/tools/check_format)
set_tests_properties(is_formatted PROPERTIES SKIP_RETURN_CODE 77)
tenon_repository_test(from_libtorch ${PROJECT_SOURCE_DIR}/tools/from_libtorch --check)
tenon_repository_test(module_reference ${PROJECT_SOURCE_DIR}/tools/module_reference --check)
tenon_repository_test(public_names ${PROJECT_SOURCE_DIR}/tests/tools/public_names_test.py
  ${TENON_GENERATED_DIR}/include/tenon/generated)
set_tests_properties(public_names PROPERTIES SKIP_RETURN_CODE 77)
tenon_repository_test(examples_test ${PROJECT_SOURCE_DIR}/tests/tools/examples_test.py)
tenon_repository_test(seeds_counter_test ${PROJECT_SOURCE_DIR}/tests/tools/seeds_test.py)
tenon_repository_test(mutants_test ${PROJECT_SOURCE_DIR}/tests/tools/mutants_test.py)
tenon_repository_test(parity_test ${PROJECT_SOURCE_DIR}/tests/tools/parity_test.py $<TARGET_FILE:parity>)
tenon_repository_test(low_memory_tool_test ${PROJECT_SOURCE_DIR}/tests/tools/low_memory_test.py)
tenon_repository_test(setup_test ${PROJECT_SOURCE_DIR}/tests/tools/setup_test.py)
tenon_repository_test(bench_report_test ${PROJECT_SOURCE_DIR}/tests/tools/bench_test.py $<TARGET_FILE:tenon_bench>)
tenon_repository_test(demo_test ${PROJECT_SOURCE_DIR}/tests/tools/demo_test.py $<TARGET_FILE:demo>)
tenon_repository_test(programs_test ${PROJECT_SOURCE_DIR}/tests/tools/programs_test.py ${PROJECT_BINARY_DIR}/examples)
tenon_repository_test(side_by_side_test ${PROJECT_SOURCE_DIR}/tests/tools/side_by_side_test.py
  ${PROJECT_BINARY_DIR}/side_by_side)
tenon_repository_test(tenon_tool_test ${PROJECT_SOURCE_DIR}/tests/tools/tenon_test.py $<TARGET_FILE:tenon_tool>)

if(TARGET tenon_runtime)
  add_executable(runtime_operators tests/deploy/operators.cpp)
  target_link_libraries(runtime_operators PRIVATE tenon::runtime tenon_flags)
  tenon_repository_test(deploy_test ${PROJECT_SOURCE_DIR}/tests/tools/deploy_test.py
    ${PROJECT_BINARY_DIR}/deploy $<TARGET_FILE:tenon_tool> $<TARGET_FILE:tenon_runtime>
    $<TARGET_FILE:runtime_operators>)
endif()

# Programs that end in every place, way and order.
tenon_program(ends tests/ends/ends.cpp)
target_compile_options(ends PRIVATE -O0)
add_test(NAME ends COMMAND Python3::Interpreter ${PROJECT_SOURCE_DIR}/tests/tools/ends_test.py $<TARGET_FILE:ends>)
set_tests_properties(ends PROPERTIES LABELS ends TIMEOUT ${TENON_LONG_TEST_TIMEOUT} PROCESSORS 2
  ENVIRONMENT "${TENON_TEST_ENVIRONMENT}")

# Programs that run out of memory: allocations fail at points drawn by a seed.
tenon_program(low_memory tests/low_memory/low_memory.cpp tests/low_memory/programs.cpp
  tests/low_memory/failing_allocator.cpp)
target_compile_options(low_memory PRIVATE -O0)
target_include_directories(low_memory PRIVATE ${PROJECT_SOURCE_DIR}/tests)
target_compile_definitions(low_memory PRIVATE TENON_TEST_CACHE="${TENON_TEST_CACHE}")
# The same allocator for the test executables (tests/main.cpp), to be loaded in front of them.
add_library(failing_allocator SHARED EXCLUDE_FROM_ALL tests/low_memory/failing_allocator.cpp)
target_include_directories(failing_allocator PRIVATE ${PROJECT_SOURCE_DIR}/tests)
target_link_libraries(failing_allocator PRIVATE tenon tenon_flags)
add_test(NAME low_memory COMMAND low_memory)
set_tests_properties(low_memory PROPERTIES LABELS low_memory TIMEOUT ${TENON_LONG_TEST_TIMEOUT}
  ENVIRONMENT "${TENON_TEST_ENVIRONMENT};TENON_ORACLE=0")

# An outside project builds against an installed copy. (A sanitized library would need a sanitized program.)
if(NOT TENON_SANITIZE)
  add_test(NAME install_consumer COMMAND ${CMAKE_COMMAND}
    -DBUILD=${PROJECT_BINARY_DIR} -DSOURCE=${PROJECT_SOURCE_DIR}/tests/install
    -P ${PROJECT_SOURCE_DIR}/tests/install/run.cmake)
  set_tests_properties(install_consumer PROPERTIES LABELS repository ENVIRONMENT "${TENON_TEST_ENVIRONMENT}")
endif()

# libFuzzer targets, with the fuzz preset alone: tests/fuzz/<name>_fuzzer.cpp.
if(TENON_SANITIZE STREQUAL "fuzzer")
  file(GLOB sources CONFIGURE_DEPENDS tests/fuzz/*_fuzzer.cpp)
  foreach(source IN LISTS sources)
    get_filename_component(name ${source} NAME_WE)
    tenon_program(${name} ${source})
    target_link_options(${name} PRIVATE -fsanitize=fuzzer)
  endforeach()
endif()
