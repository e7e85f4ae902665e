# The command-line tool, the demo, the examples and the benchmarks. All have line tables (-g1), so that an error can
# name the user's line.
function(tenon_program name)
  add_executable(${name} ${ARGN})
  target_link_libraries(${name} PRIVATE tenon tenon_flags)
  target_compile_options(${name} PRIVATE -g1)
endfunction()

file(GLOB sources CONFIGURE_DEPENDS tools/tenon/*.cpp)
if(sources)
  tenon_program(tenon_tool ${sources})
  set_target_properties(tenon_tool PROPERTIES OUTPUT_NAME tenon)
endif()

file(GLOB sources CONFIGURE_DEPENDS demo/*.cpp)
if(sources)
  tenon_program(demo ${sources})
endif()

file(GLOB sources CONFIGURE_DEPENDS examples/*.cpp)
foreach(source IN LISTS sources)
  get_filename_component(name ${source} NAME_WE)
  tenon_program(example_${name} ${source})
  set_target_properties(example_${name} PROPERTIES
    RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/examples OUTPUT_NAME ${name})
  target_compile_definitions(example_${name} PRIVATE TENON_DOCS="${PROJECT_SOURCE_DIR}/docs")
endforeach()

# Two programs that belong together: one trains a network and saves it, the other serves it without a compiler.
# (examples/deploy/CMakeLists.txt is how somebody else would build the second.)
if(TARGET tenon_runtime)
  tenon_program(deploy_train examples/deploy/train.cpp)
  add_executable(deploy_serve examples/deploy/serve.cpp)
  target_link_libraries(deploy_serve PRIVATE tenon::runtime tenon_flags)
  foreach(program train serve)
    set_target_properties(deploy_${program} PROPERTIES
      RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/deploy OUTPUT_NAME ${program})
  endforeach()
endif()

# Beside each stands the same program with LibTorch, which we do not build (tools/side_by_side does).
file(GLOB sources CONFIGURE_DEPENDS examples/side_by_side/*.cpp)
foreach(source IN LISTS sources)
  get_filename_component(name ${source} NAME_WE)
  tenon_program(side_by_side_${name} ${source})
  target_compile_options(side_by_side_${name} PRIVATE -O0)
  set_target_properties(side_by_side_${name} PROPERTIES
    RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/side_by_side OUTPUT_NAME ${name})
endforeach()

file(GLOB sources CONFIGURE_DEPENDS bench/*.cpp)
if(sources)
  # The demo's network and data too: what it trains is what is measured.
  tenon_program(tenon_bench ${sources} demo/training.cpp)
  find_package(nlohmann_json 3 REQUIRED)
  target_link_libraries(tenon_bench PRIVATE nlohmann_json::nlohmann_json)
  target_compile_definitions(tenon_bench PRIVATE TENON_BENCH_FOLDER="${PROJECT_SOURCE_DIR}/bench")
  set_target_properties(tenon_bench PROPERTIES
    RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/bench OUTPUT_NAME bench)
endif()

# Calls that PyTorch's samples make, replayed: `make parity`.
tenon_program(parity tools/parity/replay.cpp)
find_package(nlohmann_json 3 REQUIRED)
target_link_libraries(parity PRIVATE nlohmann_json::nlohmann_json)
