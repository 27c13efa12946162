# What can be chosen, and the flags every target shares.
option(TANDEM_TESTS "Build the tests" ON)
option(TANDEM_EXAMPLES "Build the examples" ON)
option(TANDEM_TOOLS "Build the tandem command" ON)
option(TANDEM_ONEDNN "Use oneDNN where it is found" ON)
option(TANDEM_WERROR "Treat warnings as errors" OFF)
set(TANDEM_SANITIZE "" CACHE STRING "A sanitizer for every target: address, undefined, thread, or address,undefined")

add_library(tandem_flags INTERFACE)
target_compile_options(tandem_flags INTERFACE -Wall -Wextra -Wpedantic -Wconversion
                       $<$<BOOL:${TANDEM_WERROR}>:-Werror> -fvisibility=hidden -fno-math-errno)
if(TANDEM_SANITIZE)
  target_compile_options(tandem_flags INTERFACE -fsanitize=${TANDEM_SANITIZE} -fno-sanitize-recover=all
                         -fno-omit-frame-pointer)
  target_link_options(tandem_flags INTERFACE -fsanitize=${TANDEM_SANITIZE})
endif()
