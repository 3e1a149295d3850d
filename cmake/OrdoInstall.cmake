# cmake --install: headers, libraries, the program, find_package(ordo) and pkg-config ordo.
include(CMakePackageConfigHelpers)
set(ordo_cmake_dir ${CMAKE_INSTALL_LIBDIR}/cmake/ordo)
set(ordo_pkgconfig_dir ${CMAKE_INSTALL_LIBDIR}/pkgconfig)

write_basic_package_version_file(ordoConfigVersion.cmake COMPATIBILITY SameMinorVersion)
configure_package_config_file(cmake/ordoConfig.cmake.in ordoConfig.cmake
  INSTALL_DESTINATION ${ordo_cmake_dir})
install(EXPORT ordoTargets NAMESPACE ordo:: DESTINATION ${ordo_cmake_dir})
install(FILES ${PROJECT_BINARY_DIR}/ordoConfig.cmake ${PROJECT_BINARY_DIR}/ordoConfigVersion.cmake
  DESTINATION ${ordo_cmake_dir})

# A static library must stand before those it uses. Modules are added lowest first, so the
# reverse of that order links; a module without sources has no library to name.
get_property(ordo_libraries GLOBAL PROPERTY ORDO_STATIC_LIBRARIES)
list(REVERSE ordo_libraries)
list(TRANSFORM ordo_libraries PREPEND "-l")
list(JOIN ordo_libraries " " ORDO_PC_LIBRARIES)
# Relative to the file itself, so that an installed tree may be moved.
file(RELATIVE_PATH ORDO_PC_PREFIX ${CMAKE_INSTALL_PREFIX}/${ordo_pkgconfig_dir}
  ${CMAKE_INSTALL_PREFIX})
string(REGEX REPLACE "/$" "" ORDO_PC_PREFIX "${ORDO_PC_PREFIX}")
configure_file(cmake/ordo.pc.in ordo.pc @ONLY)
install(FILES ${PROJECT_BINARY_DIR}/ordo.pc DESTINATION ${ordo_pkgconfig_dir})
if(TARGET ordo::store_rocksdb)
  configure_file(cmake/ordo-store-rocksdb.pc.in ordo-store-rocksdb.pc @ONLY)
  install(FILES ${PROJECT_BINARY_DIR}/ordo-store-rocksdb.pc DESTINATION ${ordo_pkgconfig_dir})
endif()

if(TARGET ordo)  # ordo/app installs it
  add_dependencies(ordo_product ordo)
endif()
install(FILES LICENSE README.md CHANGELOG.md DESTINATION ${CMAKE_INSTALL_DOCDIR})
