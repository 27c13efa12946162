# The libraries, by pkg-config. Installed too: find_package(tandem) includes it.
find_package(Threads REQUIRED)
find_package(PkgConfig REQUIRED)
pkg_check_modules(ZLIB REQUIRED IMPORTED_TARGET zlib)
pkg_check_modules(LIBZIP REQUIRED IMPORTED_TARGET libzip)
pkg_check_modules(JANSSON REQUIRED IMPORTED_TARGET jansson)
pkg_check_modules(JPEG REQUIRED IMPORTED_TARGET libjpeg)
pkg_check_modules(PNG REQUIRED IMPORTED_TARGET libpng)
pkg_check_modules(WEBP REQUIRED IMPORTED_TARGET libwebp)
pkg_check_modules(PROTOBUFC REQUIRED IMPORTED_TARGET libprotobuf-c)
pkg_check_modules(ISAL REQUIRED IMPORTED_TARGET libisal)
find_package(GIF 5.1 REQUIRED) # giflib has a pkg-config file on some systems only
pkg_check_modules(LIBSSL REQUIRED IMPORTED_TARGET openssl>=3.0)
find_path(CSV_INCLUDE_DIR csv.h REQUIRED) # libcsv comes without a pkg-config file
find_library(CSV_LIBRARY csv REQUIRED)
if(NOT TARGET CSV::csv)
  add_library(CSV::csv UNKNOWN IMPORTED)
  set_target_properties(CSV::csv PROPERTIES IMPORTED_LOCATION ${CSV_LIBRARY} INTERFACE_INCLUDE_DIRECTORIES ${CSV_INCLUDE_DIR})
endif()
pkg_search_module(HDF5 REQUIRED IMPORTED_TARGET hdf5-serial hdf5)
if(TANDEM_ONEDNN)
  # Not by its CMake package: Debian 12's asks for OpenCL's headers, which nothing here needs.
  find_path(DNNL_INCLUDE_DIR oneapi/dnnl/dnnl.h)
  find_library(DNNL_LIBRARY dnnl)
  if(DNNL_INCLUDE_DIR AND DNNL_LIBRARY)
    set(dnnl_FOUND TRUE)
    if(NOT TARGET DNNL::dnnl)
      add_library(DNNL::dnnl UNKNOWN IMPORTED)
      set_target_properties(DNNL::dnnl PROPERTIES IMPORTED_LOCATION ${DNNL_LIBRARY}
                            INTERFACE_INCLUDE_DIRECTORIES ${DNNL_INCLUDE_DIR}
                            INTERFACE_LINK_LIBRARIES gomp) # its OpenMP, which the engine keeps to one thread
    endif()
  endif()
endif()
if(TANDEM_UCX)
  find_path(UCX_INCLUDE_DIR ucp/api/ucp.h) # its headers alone: the library is looked for when it is wanted
  if(NOT UCX_INCLUDE_DIR)
    message(STATUS "UCX's headers are not there (libucx-dev): data between processes will go by TLS alone")
  endif()
endif()
