# libtenon_runtime: runs functions from files (package/load_compiled.h). It has no capture, no autograd and no compiler;
# of the rows it has the kernels, of the operators those few that a program needs to make a tensor and to look into it.
# Shared (tenon::runtime), and static (tenon::runtime_static) for programs that are one file.
file(GLOB_RECURSE sources CONFIGURE_DEPENDS src/ops/*.cpp)
# Of operators that are no rows, nothing is left.
foreach(file table pointwise/below/closeness random/distributions)
  list(REMOVE_ITEM sources ${PROJECT_SOURCE_DIR}/src/ops/${file}.cpp)
endforeach()
add_library(tenon_row_kernels OBJECT ${sources})
target_link_libraries(tenon_row_kernels PRIVATE tenon_flags tenon_dependencies)
target_compile_definitions(tenon_row_kernels PRIVATE TENON_KERNELS_ONLY)
# What only gradients and decompositions call is left out by the linker, and is hidden so that it may.
target_compile_options(tenon_row_kernels PRIVATE -fvisibility=hidden -Wno-unused)
target_precompile_headers(tenon_row_kernels PRIVATE cmake/precompiled_tensor.h)
add_dependencies(tenon_row_kernels tenon_generated_api)

add_library(tenon_few_operators OBJECT src/package/few_operators.cpp)
target_link_libraries(tenon_few_operators PRIVATE tenon_flags tenon_dependencies)
add_dependencies(tenon_few_operators tenon_generated_api)

set(objects
  ${TENON_RUNTIME_OBJECTS} $<TARGET_OBJECTS:tenon_row_kernels> $<TARGET_OBJECTS:tenon_few_operators>)

add_library(tenon_runtime SHARED ${objects})
set_target_properties(tenon_runtime PROPERTIES
  VERSION ${PROJECT_VERSION} SOVERSION 0 DEFINE_SYMBOL "" EXPORT_NAME runtime)
target_link_libraries(tenon_runtime PRIVATE $<BUILD_INTERFACE:tenon_dependencies> PUBLIC fmt::fmt)
# Of the templates for pairs of dtypes many come to the same code.
target_link_options(tenon_runtime PRIVATE ${TENON_LINK_OPTIONS}
  $<$<BOOL:${TENON_HAVE_gold}>:-Wl,--icf=safe>
  -Wl,--version-script=${PROJECT_SOURCE_DIR}/cmake/exports_runtime.map)
set_property(TARGET tenon_runtime APPEND PROPERTY LINK_DEPENDS ${PROJECT_SOURCE_DIR}/cmake/exports_runtime.map)

# One object: nobody names what registers rows, and a linker takes of an archive what is named; and what is wrapped is
# wrapped for the library's code alone, not for the program's.
set(object ${PROJECT_BINARY_DIR}/tenon_runtime.o)
add_custom_command(OUTPUT ${object}
  COMMAND ${CMAKE_LINKER} -r ${TENON_WRAPPED} -o ${object} "$<FILTER:${objects},EXCLUDE,[.]gch$>"
  DEPENDS ${objects} COMMENT "Linking the object of libtenon_runtime.a" COMMAND_EXPAND_LISTS VERBATIM)
set_source_files_properties(${object} PROPERTIES EXTERNAL_OBJECT ON GENERATED ON)
add_library(tenon_runtime_static STATIC ${object})
set_target_properties(tenon_runtime_static PROPERTIES
  LINKER_LANGUAGE CXX OUTPUT_NAME tenon_runtime ARCHIVE_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}
  EXPORT_NAME runtime_static)
# What registers no kernel and is called by nobody names functions of the compiler, which are not there.
target_link_options(tenon_runtime_static INTERFACE -Wl,--gc-sections)
target_link_libraries(tenon_runtime_static INTERFACE fmt::fmt dnnl gomp Threads::Threads ${CMAKE_DL_LIBS})

foreach(kind "" _static)
  target_compile_features(tenon_runtime${kind} INTERFACE cxx_std_20)
  target_include_directories(tenon_runtime${kind} INTERFACE
    $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include>
    $<BUILD_INTERFACE:${TENON_GENERATED_DIR}/include>
    $<INSTALL_INTERFACE:include>)
  add_library(tenon::runtime${kind} ALIAS tenon_runtime${kind})
endforeach()
