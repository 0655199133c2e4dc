include(GNUInstallDirs)

option(SPK_BUILD_TOOLS "Build the program `stripepack`" ON)
option(SPK_BUILD_PYTHON "Build the Python module (needs pybind11 and Python's headers)" ON)
option(SPK_BUILD_IMAGE "Build libstripepack-image, which decodes pictures (needs libjpeg)" ON)
option(SPK_BUILD_SAMPLES "Build the sample trainers" ${PROJECT_IS_TOP_LEVEL})
option(SPK_BUILD_TESTS "Build the tests" ${PROJECT_IS_TOP_LEVEL})
option(SPK_TEST_PFS "Run the tests that bring up a real CephFS and a real Slurm (need root)" OFF)
option(SPK_BUILD_BENCH "Build the benchmarks" OFF)
option(SPK_BUILD_FUZZERS "Build libFuzzer targets instead of the other tests (needs Clang)" OFF)
option(SPK_WARNINGS_AS_ERRORS "Warnings stop the build" OFF)
set(SPK_SANITIZE "" CACHE STRING "Sanitizers to build with, such as address,undefined or thread")

# Foreign libraries. ON means: used where it is found. All but TBB and CLI11 may be missing.
foreach(library IN ITEMS XXHASH URING JPEG PNG WEBP TIFF GIF LCMS HDF5 LMDB OPENSSL ZLIB ZSTD)
  option(SPK_WITH_${library} "Use ${library} where it is found" ON)
endforeach()

option(SPK_WITH_MPI "Build a plugin for each MPI that is found" ON)

set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_C_STANDARD 11)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_CXX_VISIBILITY_PRESET hidden)
set(CMAKE_C_VISIBILITY_PRESET hidden)
set(CMAKE_VISIBILITY_INLINES_HIDDEN ON)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
# Libraries that lie outside the system's folders (conda, modules) are found again after installing.
set(CMAKE_INSTALL_RPATH_USE_LINK_PATH ON)
if(NOT CMAKE_BUILD_TYPE AND NOT CMAKE_CONFIGURATION_TYPES)
  set(CMAKE_BUILD_TYPE RelWithDebInfo CACHE STRING "Build type" FORCE)
endif()
