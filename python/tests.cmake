# tests/python: the package by itself with the Python that it was built for; the backend with a Python that has PyTorch
# (TENON_PEER_PYTHON, or the same one), each file of tests by itself. What cannot run says so and is shown as skipped.
file(GLOB suites CONFIGURE_DEPENDS RELATIVE ${PROJECT_SOURCE_DIR}/../tests/python
  ${PROJECT_SOURCE_DIR}/../tests/python/*/*_test.py)
foreach(suite IN LISTS suites)
  string(REGEX REPLACE "(.*)/(.*)_test.py" "python_\\1_\\2" name ${suite})
  add_test(NAME ${name} COMMAND Python3::Interpreter ${PROJECT_SOURCE_DIR}/../tests/python/run.py ${suite}
    --package ${CMAKE_BINARY_DIR}/python)
  set_tests_properties(${name} PROPERTIES LABELS python TIMEOUT 600 SKIP_RETURN_CODE 77
    ENVIRONMENT "${TENON_TEST_ENVIRONMENT}")
endforeach()
