# What the library is linked with, as `tenon_dependencies`. LLVM is apart, in llvm.cmake: only one folder sees it.
set(THREADS_PREFER_PTHREAD_FLAG ON)
find_package(Threads REQUIRED)
find_package(fmt REQUIRED)
add_library(tenon_dependencies INTERFACE)
target_link_libraries(tenon_dependencies INTERFACE fmt::fmt Threads::Threads ${CMAKE_DL_LIBS})

# libgomp is not instrumented for the thread sanitizer, and clang has no libomp here: threads of our own stand in.
if(TENON_SANITIZE STREQUAL "thread" OR TENON_SANITIZE STREQUAL "fuzzer")
  target_compile_definitions(tenon_dependencies INTERFACE TENON_OWN_THREADS)
else()
  find_package(OpenMP REQUIRED COMPONENTS CXX)
  target_link_libraries(tenon_dependencies INTERFACE OpenMP::OpenMP_CXX)
endif()

# By name: the CMake package of Debian's oneDNN demands OpenCL headers.
find_library(TENON_DNNL_LIBRARY dnnl REQUIRED)
find_path(TENON_DNNL_INCLUDE dnnl.hpp REQUIRED)
add_library(tenon_dnnl INTERFACE)
target_include_directories(tenon_dnnl SYSTEM INTERFACE ${TENON_DNNL_INCLUDE})
target_link_libraries(tenon_dnnl INTERFACE ${TENON_DNNL_LIBRARY})
target_link_libraries(tenon_dependencies INTERFACE tenon_dnnl)
