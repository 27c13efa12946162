# What can be chosen, and the flags every target shares.
option(TANDEM_TESTS "Build the tests" ON)
option(TANDEM_EXAMPLES "Build the examples" ON)
option(TANDEM_TOOLS "Build the tandem command" ON)
option(TANDEM_ONEDNN "Use oneDNN where it is found" ON)
option(TANDEM_UCX "Move data between processes by UCX where it is found" ON)
option(TANDEM_VECTORS "Compile the vector loops for AVX2 and AVX-512 too, on x86-64" ON)
option(TANDEM_FUZZ "Build the fuzz targets (Clang)" OFF)
option(TANDEM_WERROR "Treat warnings as errors" OFF)
set(TANDEM_SANITIZE "" CACHE STRING "A sanitizer for every target: address, undefined, thread, or address,undefined")

add_compile_options(-Wall -Wextra -Wpedantic -Wconversion -fno-math-errno)
if(CMAKE_C_COMPILER_ID STREQUAL "GNU" AND CMAKE_C_COMPILER_VERSION VERSION_LESS 12)
  add_compile_options(-Wno-missing-field-initializers) # it does not see that the fields after a designated one are options
endif()
if(TANDEM_WERROR)
  add_compile_options(-Werror)
endif()
if(TANDEM_SANITIZE)
  add_compile_options(-fsanitize=${TANDEM_SANITIZE} -fno-sanitize-recover=all -fno-omit-frame-pointer)
  add_link_options(-fsanitize=${TANDEM_SANITIZE})
  if(CMAKE_C_COMPILER_ID MATCHES "Clang")
    add_compile_options(-Wno-pass-failed) # its checks keep loops from becoming vectors
  endif()
endif()
if(TANDEM_FUZZ)
  if(NOT CMAKE_C_COMPILER_ID MATCHES "Clang")
    message(FATAL_ERROR "TANDEM_FUZZ needs Clang's libFuzzer; configure with CC=clang (this is ${CMAKE_C_COMPILER_ID})")
  endif()
  add_compile_options($<$<COMPILE_LANGUAGE:C>:-fsanitize=fuzzer-no-link>) # tests of the headers in C++ may be by GCC
  add_compile_options(-Wno-pass-failed) # its counters keep loops from becoming vectors
endif()
