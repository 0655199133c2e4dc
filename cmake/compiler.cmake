if((CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 12) OR
   (CMAKE_CXX_COMPILER_ID MATCHES "Clang" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 14))
  message(FATAL_ERROR
    "stripepack needs GCC 12 or Clang 14 or newer; found ${CMAKE_CXX_COMPILER_ID} "
    "${CMAKE_CXX_COMPILER_VERSION} (${CMAKE_CXX_COMPILER}).\n"
    "On a cluster: `module load gcc/12` (or newer). On RHEL 8/9: `dnf install gcc-toolset-12` and "
    "`scl enable gcc-toolset-12 bash`. On Debian/Ubuntu: `apt install g++-12`. "
    "Or name one: cmake -DCMAKE_CXX_COMPILER=g++-12.")
endif()

add_library(spk_flags INTERFACE)
target_compile_options(spk_flags INTERFACE
  -Wall -Wextra -Wshadow -Wcast-align -Wimplicit-fallthrough
  $<$<COMPILE_LANGUAGE:CXX>:-Wnon-virtual-dtor;-Woverloaded-virtual>)
if(SPK_WARNINGS_AS_ERRORS)
  target_compile_options(spk_flags INTERFACE -Werror)
endif()
if(SPK_SANITIZE)
  add_compile_options(-fsanitize=${SPK_SANITIZE} -fno-omit-frame-pointer)
  add_link_options(-fsanitize=${SPK_SANITIZE})
  if(SPK_SANITIZE MATCHES "undefined")
    add_compile_options(-fno-sanitize-recover=undefined)
  endif()
endif()
if(SPK_BUILD_FUZZERS)
  if(NOT CMAKE_CXX_COMPILER_ID MATCHES "Clang")
    message(FATAL_ERROR "Fuzz targets need Clang, found ${CMAKE_CXX_COMPILER_ID}: "
      "use `cmake --preset fuzz`, or name it by -DCMAKE_CXX_COMPILER=clang++.")
  endif()
  add_compile_options(-fsanitize=fuzzer-no-link)
endif()

# libstripepack.so drops what the C ABI does not reach (see --gc-sections there).
add_compile_options(-ffunction-sections -fdata-sections)
