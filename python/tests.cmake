# tests/python: the package by itself with the Python that it was built for; the backend with a Python that has PyTorch
# (TENON_PEER_PYTHON, or the same one). What cannot run says so and is shown as skipped.
foreach(suite package backend)
  add_test(NAME python_${suite} COMMAND Python3::Interpreter ${PROJECT_SOURCE_DIR}/../tests/python/run.py ${suite}
    --package ${CMAKE_BINARY_DIR}/python)
  set_tests_properties(python_${suite} PROPERTIES LABELS python TIMEOUT 600 SKIP_RETURN_CODE 77
    ENVIRONMENT "${TENON_TEST_ENVIRONMENT}")
endforeach()
