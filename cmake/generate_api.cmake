# tools/generate_api reads the rows of src/ops and writes the C++ API: a header and a source for each file of rows, one
# header for all of them and one for the methods, each only if it changed, so that editing a kernel does not rebuild the
# world.
file(GLOB TENON_GENERATOR_SOURCES CONFIGURE_DEPENDS tools/generate_api/*.cpp)
file(GLOB TENON_ROW_FILES CONFIGURE_DEPENDS src/ops/*/*.cpp)  # not those in `below/`, which have no C++ functions
if(TENON_GENERATOR_SOURCES)
  # All but main.cpp is a library of its own, which the unit tests link too.
  list(FILTER TENON_GENERATOR_SOURCES EXCLUDE REGEX "/main.cpp$")
  add_library(generate_api_parts OBJECT ${TENON_GENERATOR_SOURCES})
  target_link_libraries(generate_api_parts PRIVATE tenon_flags tenon_dependencies)
  target_precompile_headers(generate_api_parts REUSE_FROM tenon_base)
  add_executable(generate_api tools/generate_api/main.cpp
    $<TARGET_OBJECTS:tenon_base> $<TARGET_OBJECTS:generate_api_parts>)
  target_link_libraries(generate_api PRIVATE tenon_flags tenon_dependencies)
endif()

if(TENON_GENERATOR_SOURCES AND TENON_ROW_FILES)
  set(include_dir ${TENON_GENERATED_DIR}/include/tenon/generated)
  set(TENON_GENERATED_HEADERS ${include_dir}/tensor_methods.h ${include_dir}/ops.h)
  set(TENON_GENERATED_SOURCES "")
  foreach(file IN LISTS TENON_ROW_FILES)
    get_filename_component(family ${file} NAME_WE)
    file(STRINGS ${file} rows REGEX "^OPS\\(" LIMIT_COUNT 1)
    if(rows)
      list(APPEND TENON_GENERATED_HEADERS ${include_dir}/ops/${family}.h)
      list(APPEND TENON_GENERATED_SOURCES ${TENON_GENERATED_DIR}/src/ops_${family}.cpp)
    else()
      # It may get rows.
      set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${file})
    endif()
  endforeach()
  file(MAKE_DIRECTORY ${include_dir}/ops ${TENON_GENERATED_DIR}/src)
  add_custom_command(
    OUTPUT ${TENON_GENERATED_HEADERS} ${TENON_GENERATED_SOURCES}
           ${include_dir}/compat_methods.h ${include_dir}/compat_functions.h
    COMMAND generate_api --out ${include_dir} --source-out ${TENON_GENERATED_DIR}/src ${TENON_ROW_FILES}
    DEPENDS generate_api ${TENON_ROW_FILES}
    COMMENT "Generating the C++ API from the rows" VERBATIM)
  add_custom_target(tenon_generated_api DEPENDS ${TENON_GENERATED_HEADERS} ${TENON_GENERATED_SOURCES})
endif()
