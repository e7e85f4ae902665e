# find_package(tenon) from another project gives the targets tenon::tenon and tenon::torch, and, alone if they are asked
# for as the component `runtime`, tenon::runtime and tenon::runtime_static. (`cmake --install BUILD --component runtime`
# installs what a machine needs that only runs functions from files.)
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)
install(TARGETS tenon tenon_torch EXPORT tenonTargets LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
if(TARGET tenon_runtime)
  install(TARGETS tenon_runtime tenon_runtime_static EXPORT tenonRuntimeTargets
    LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT runtime NAMELINK_COMPONENT Unspecified
    ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
  install(EXPORT tenonRuntimeTargets NAMESPACE tenon:: DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/tenon)
endif()
install(DIRECTORY include/tenon ${TENON_GENERATED_DIR}/include/tenon DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}
  FILES_MATCHING PATTERN *.h)
install(DIRECTORY compat/ DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/tenon_torch FILES_MATCHING PATTERN *.h)
if(TARGET tenon_tool)
  # The tool finds its library wherever both are put.
  set_target_properties(tenon_tool PROPERTIES INSTALL_RPATH "$ORIGIN/../${CMAKE_INSTALL_LIBDIR}")
  install(TARGETS tenon_tool RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
endif()

set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/tenon)
install(EXPORT tenonTargets NAMESPACE tenon:: DESTINATION ${package_dir})
configure_package_config_file(cmake/tenonConfig.cmake.in ${PROJECT_BINARY_DIR}/tenonConfig.cmake
  INSTALL_DESTINATION ${package_dir})
write_basic_package_version_file(${PROJECT_BINARY_DIR}/tenonConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/tenonConfig.cmake ${PROJECT_BINARY_DIR}/tenonConfigVersion.cmake
  DESTINATION ${package_dir})
