# How our code is compiled and linked. `tenon_flags` carries the warnings and the sanitizer to our own targets only.
set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
set(CMAKE_LIBRARY_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR})
set(CMAKE_RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR})
set(CMAKE_BUILD_RPATH_USE_ORIGIN ON)
set(CMAKE_CXX_FLAGS_RELEASE "-O2 -DNDEBUG")
set(CMAKE_CXX_FLAGS_DEBUG "-O0 -g")

if(NOT CMAKE_CXX_COMPILER_LAUNCHER)
  find_program(CCACHE ccache)
  if(CCACHE)
    set(CMAKE_CXX_COMPILER_LAUNCHER ${PROJECT_SOURCE_DIR}/tools/cached_compiler)
  endif()
endif()

# Linking LLVM is most of the link: the faster linkers take a third of the time of the default one. (Gold complains
# about the symbols of clang's sanitizers.)
include(CheckLinkerFlag)
set(linkers lld)
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  list(APPEND linkers gold)
endif()
foreach(linker IN LISTS linkers)
  check_linker_flag(CXX -fuse-ld=${linker} TENON_HAVE_${linker})
  if(TENON_HAVE_${linker})
    add_link_options(-fuse-ld=${linker})
    break()
  endif()
endforeach()

add_library(tenon_flags INTERFACE)
target_include_directories(tenon_flags INTERFACE
  ${PROJECT_SOURCE_DIR}/include ${PROJECT_BINARY_DIR}/generated/include ${PROJECT_SOURCE_DIR}/src)
# Compiled equals eager bit for bit only if nobody contracts a*b+c on his own.
target_compile_options(tenon_flags INTERFACE
  -Wall -Wextra -Wshadow -ffp-contract=off -ffunction-sections -fdata-sections)
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  # GCC 12 reports these falsely in std::string's own code once it is inlined; make asan finds the real ones.
  target_compile_options(tenon_flags INTERFACE
    -Werror -Wno-array-bounds -Wno-restrict -Wno-stringop-overflow -Wno-stringop-overread -Wno-maybe-uninitialized)
endif()

# An index past the end of a vector ends the program, also where the memory behind it belongs to the vector.
target_compile_definitions(tenon_flags INTERFACE $<$<NOT:$<CONFIG:Release>>:_GLIBCXX_ASSERTIONS>)

if(TENON_SANITIZE STREQUAL "address")
  set(sanitizer -fsanitize=address,undefined -fno-sanitize-recover=all -fno-omit-frame-pointer)
elseif(TENON_SANITIZE STREQUAL "thread")
  # The sanitizer does not know fences. Ours (dispatch/inside_call.h) stand beside acquiring loads and releasing stores,
  # which it does know.
  set(sanitizer -fsanitize=thread -fno-omit-frame-pointer -Wno-tsan)
elseif(TENON_SANITIZE STREQUAL "fuzzer")
  set(sanitizer -fsanitize=address,undefined,fuzzer-no-link -fno-sanitize-recover=all -fno-omit-frame-pointer)
elseif(TENON_SANITIZE)
  message(FATAL_ERROR "TENON_SANITIZE is '${TENON_SANITIZE}': expected address, thread, fuzzer or nothing")
endif()
if(TENON_SANITIZE)
  add_compile_options(${sanitizer})
  add_link_options(${sanitizer})
  # GCC's sanitizers make it see uninitialised values that are not there.
  target_compile_options(tenon_flags INTERFACE $<$<CXX_COMPILER_ID:GNU>:-Wno-maybe-uninitialized>)
endif()
