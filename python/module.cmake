# The extension module, and the package around it.
set(TENON_PYTHON_FOLDER ${CMAKE_BINARY_DIR}/python)
if(PROJECT_IS_TOP_LEVEL)
  set(CMAKE_CXX_STANDARD 20)
  set(CMAKE_CXX_STANDARD_REQUIRED ON)
  set(library ${repository}/build/libtenon.so.0)
  if(NOT EXISTS ${repository}/build/build.ninja)
    execute_process(COMMAND ${CMAKE_COMMAND} --preset release WORKING_DIRECTORY ${repository}
      COMMAND_ERROR_IS_FATAL ANY)
  endif()
  execute_process(COMMAND ${CMAKE_COMMAND} --build ${repository}/build --target tenon COMMAND_ERROR_IS_FATAL ANY)
  find_package(fmt REQUIRED)
  add_library(tenon SHARED IMPORTED)
  set_target_properties(tenon PROPERTIES IMPORTED_LOCATION ${library}
    INTERFACE_INCLUDE_DIRECTORIES "${repository}/include;${repository}/build/generated/include"
    INTERFACE_LINK_LIBRARIES fmt::fmt)
  add_library(tenon_flags INTERFACE)
endif()

find_package(nanobind CONFIG REQUIRED)
file(GLOB sources CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/src/*.cpp)
# One file for every Python from 3.12 on; 3.11 has one of its own.
nanobind_add_module(tenon_core STABLE_ABI NB_STATIC NOMINSIZE ${sources})
target_link_libraries(tenon_core PRIVATE tenon tenon_flags)
target_compile_options(tenon_core PRIVATE -ffp-contract=off)
target_include_directories(tenon_core SYSTEM PRIVATE ${nanobind_DIR}/../include ${Python_INCLUDE_DIRS})
set_target_properties(tenon_core PROPERTIES OUTPUT_NAME _core INSTALL_RPATH "$ORIGIN"
  LIBRARY_OUTPUT_DIRECTORY ${TENON_PYTHON_FOLDER}/tenon)

file(GLOB package CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/tenon/*.py ${CMAKE_CURRENT_SOURCE_DIR}/tenon/*.pyi
  ${CMAKE_CURRENT_SOURCE_DIR}/tenon/py.typed)
file(MAKE_DIRECTORY ${TENON_PYTHON_FOLDER}/tenon)
foreach(file IN LISTS package)
  get_filename_component(name ${file} NAME)
  file(CREATE_LINK ${file} ${TENON_PYTHON_FOLDER}/tenon/${name} SYMBOLIC)
endforeach()
# PyTorch finds the backend by what an installed package says of itself.
set(about ${TENON_PYTHON_FOLDER}/tenon-${CMAKE_PROJECT_VERSION}.dist-info)
file(WRITE ${about}/METADATA "Metadata-Version: 2.1\nName: tenon\nVersion: ${CMAKE_PROJECT_VERSION}\n")
file(WRITE ${about}/entry_points.txt "[torch_dynamo_backends]\ntenon = tenon.torch_backend:tenon\n")

if(PROJECT_IS_TOP_LEVEL)
  install(TARGETS tenon_core LIBRARY DESTINATION .)
  # Under the name that the module asks for; the rest of what it needs is the system's (tools/setup).
  file(REAL_PATH ${library} real_library)
  install(FILES ${real_library} DESTINATION . RENAME libtenon.so.0)
endif()
