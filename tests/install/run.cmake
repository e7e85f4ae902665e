# cmake -DBUILD=… -DSOURCE=… -P run.cmake: installs the build to a prefix of its own, then configures, builds and runs
# the outside project against it.
set(prefix ${BUILD}/install_test/prefix)
set(consumer ${BUILD}/install_test/build)
file(REMOVE_RECURSE ${BUILD}/install_test)

function(must_run)
  execute_process(COMMAND ${ARGN} RESULT_VARIABLE code OUTPUT_VARIABLE output ERROR_VARIABLE output)
  if(NOT code EQUAL 0)
    message(FATAL_ERROR "${ARGN}\n${output}")
  endif()
  set(output "${output}" PARENT_SCOPE)
endfunction()

must_run(${CMAKE_COMMAND} --install ${BUILD} --prefix ${prefix})
must_run(${CMAKE_COMMAND} -G Ninja -S ${SOURCE} -B ${consumer} -DCMAKE_PREFIX_PATH=${prefix} -DCMAKE_BUILD_TYPE=Release)
must_run(${CMAKE_COMMAND} --build ${consumer})
must_run(${consumer}/consumer)
if(NOT output MATCHES "expected a negative sum, got 332833500")
  message(FATAL_ERROR "The outside program printed:\n${output}")
endif()
# The installed tool, with nothing but its own folder to look for the library in.
must_run(${CMAKE_COMMAND} -E env --unset=LD_LIBRARY_PATH ${prefix}/bin/tenon --help)
if(NOT output MATCHES "usage")
  message(FATAL_ERROR "The installed tool printed:\n${output}")
endif()
