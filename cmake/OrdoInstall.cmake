# cmake --install: headers, libraries, find_package(ordo) and pkg-config ordo.
include(CMakePackageConfigHelpers)
write_basic_package_version_file(ordoConfigVersion.cmake COMPATIBILITY SameMinorVersion)
configure_package_config_file(cmake/ordoConfig.cmake.in ordoConfig.cmake
  INSTALL_DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/ordo)
install(EXPORT ordoTargets NAMESPACE ordo:: DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/ordo)
install(FILES ${PROJECT_BINARY_DIR}/ordoConfig.cmake ${PROJECT_BINARY_DIR}/ordoConfigVersion.cmake
  DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/ordo)
