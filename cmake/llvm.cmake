# LLVM 19, linked statically and once, into libtenon.so. Its headers are on the include path of src/codegen/llvm only.
find_package(LLVM 19.1 REQUIRED CONFIG)
llvm_map_components_to_libnames(TENON_LLVM_LIBRARIES
  core support native passes instcombine scalaropts transformutils analysis irreader asmparser
  symbolize debuginfodwarf object targetparser)

add_library(tenon_llvm OBJECT ${TENON_LLVM_SOURCES} ${TENON_VERSION_HEADER})
target_include_directories(tenon_llvm SYSTEM PRIVATE ${LLVM_INCLUDE_DIRS})
separate_arguments(TENON_LLVM_DEFINITIONS NATIVE_COMMAND ${LLVM_DEFINITIONS})
target_compile_definitions(tenon_llvm PRIVATE ${TENON_LLVM_DEFINITIONS} NDEBUG)  # NDEBUG: as Debian built LLVM
target_link_libraries(tenon_llvm PRIVATE tenon_flags tenon_dependencies)
if(NOT LLVM_ENABLE_RTTI)
  target_compile_options(tenon_llvm PRIVATE -fno-rtti)
endif()
# GCC 12 sees uninitialised values in what it inlines from LLVM's headers.
target_compile_options(tenon_llvm
  PRIVATE $<$<CXX_COMPILER_ID:GNU>:-Wno-maybe-uninitialized> -fvisibility-inlines-hidden)
target_precompile_headers(tenon_llvm PRIVATE cmake/precompiled_llvm.h)

target_sources(tenon PRIVATE $<TARGET_OBJECTS:tenon_llvm>)
target_link_libraries(tenon PRIVATE "$<BUILD_INTERFACE:${TENON_LLVM_LIBRARIES}>")
