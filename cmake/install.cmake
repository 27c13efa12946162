# `cmake --install`: headers, both libraries, the command, its pages, pkg-config, find_package(tandem).
include(CMakePackageConfigHelpers)

install(DIRECTORY include/tandem DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
install(TARGETS tandem_static tandem_shared EXPORT tandem-targets
        ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR} LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
if(TARGET tandem)
  install(TARGETS tandem RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
endif()
file(GLOB TANDEM_MAN_PAGES CONFIGURE_DEPENDS docs/man/*.1)
install(FILES ${TANDEM_MAN_PAGES} DESTINATION ${CMAKE_INSTALL_MANDIR}/man1)
install(FILES tools/tandem.bash-completion DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions
        RENAME tandem OPTIONAL)

set(TANDEM_PACKAGE_DIR ${CMAKE_INSTALL_LIBDIR}/cmake/tandem)
install(EXPORT tandem-targets NAMESPACE tandem:: DESTINATION ${TANDEM_PACKAGE_DIR} FILE tandemTargets.cmake)
configure_package_config_file(cmake/tandemConfig.cmake.in ${PROJECT_BINARY_DIR}/tandemConfig.cmake
                              INSTALL_DESTINATION ${TANDEM_PACKAGE_DIR})
write_basic_package_version_file(${PROJECT_BINARY_DIR}/tandemConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/tandemConfig.cmake ${PROJECT_BINARY_DIR}/tandemConfigVersion.cmake
              cmake/dependencies.cmake DESTINATION ${TANDEM_PACKAGE_DIR})

file(RELATIVE_PATH TANDEM_PC_PREFIX /${CMAKE_INSTALL_LIBDIR}/pkgconfig /)
string(REGEX REPLACE "/$" "" TANDEM_PC_PREFIX ${TANDEM_PC_PREFIX})
# What the archive links by name: by Requires.private, --static would ask for all that those link in turn, too.
set(TANDEM_PC_LIBS_PRIVATE ${LIBZIP_LDFLAGS} ${JANSSON_LDFLAGS} ${HDF5_LDFLAGS} ${JPEG_LDFLAGS}
    ${PNG_LDFLAGS} ${WEBP_LDFLAGS} -lgif ${PROTOBUFC_LDFLAGS} ${ISAL_LDFLAGS} ${LIBSSL_LDFLAGS} -lcsv ${ZLIB_LDFLAGS} -pthread -lm)
if(dnnl_FOUND)
  list(PREPEND TANDEM_PC_LIBS_PRIVATE -ldnnl -lgomp)
endif()
list(JOIN TANDEM_PC_LIBS_PRIVATE " " TANDEM_PC_LIBS_PRIVATE)
configure_file(cmake/tandem.pc.in ${PROJECT_BINARY_DIR}/tandem.pc @ONLY)
install(FILES ${PROJECT_BINARY_DIR}/tandem.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
