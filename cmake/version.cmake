# <tenon/generated/version.h>: the version, and a digest of the sources that decide what machine code a kernel becomes,
# so that an object cached by yesterday's code generator is not taken for today's.
set(TENON_GENERATED_DIR ${PROJECT_BINARY_DIR}/generated)
set(TENON_VERSION_HEADER ${TENON_GENERATED_DIR}/include/tenon/generated/version.h)
file(GLOB_RECURSE TENON_CODEGEN_FILES CONFIGURE_DEPENDS
  src/codegen/*.cpp src/codegen/*.h src/loop/*.cpp src/loop/*.h include/tenon/codegen/*.h include/tenon/loop/*.h)
add_custom_command(
  OUTPUT ${TENON_VERSION_HEADER}
  COMMAND ${CMAKE_COMMAND} "-DFILES=${TENON_CODEGEN_FILES}" -DVERSION=${PROJECT_VERSION} -DOUT=${TENON_VERSION_HEADER}
          -P ${PROJECT_SOURCE_DIR}/cmake/write_version.cmake
  DEPENDS ${TENON_CODEGEN_FILES} ${PROJECT_SOURCE_DIR}/cmake/write_version.cmake
  COMMENT "Writing version.h" VERBATIM)
