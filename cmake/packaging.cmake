# `make -f Makefile.dist deb`: Debian packages by CPack. Configure with
# CMAKE_INSTALL_PREFIX=/usr, so that the folders are Debian's.
set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_NAME stripepack)
# Whoever hands packages on puts their own name here: a maintainer is asked and answers.
set(SPK_DEB_MAINTAINER "stripepack developers <stripepack@localhost>" CACHE STRING
  "Maintainer that Debian packages and their changelog name: NAME <ADDRESS>")
set(CPACK_PACKAGE_CONTACT "${SPK_DEB_MAINTAINER}")
set(CPACK_PACKAGE_VERSION ${PROJECT_VERSION})
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_STRIP_FILES ON)
set(CPACK_INSTALL_DEFAULT_DIRECTORY_PERMISSIONS
  OWNER_READ OWNER_WRITE OWNER_EXECUTE GROUP_READ GROUP_EXECUTE WORLD_READ WORLD_EXECUTE)
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS_PRIVATE_DIRS ${CMAKE_BINARY_DIR}/lib)
set(CPACK_DEBIAN_PACKAGE_GENERATE_SHLIBS ON)
set(CPACK_DEBIAN_PACKAGE_CONTROL_STRICT_PERMISSION ON)

# One for all packages would go before each one's own, which begins with a summary in its first line.
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "")

set(CPACK_PRE_BUILD_SCRIPTS ${PROJECT_SOURCE_DIR}/cmake/debian-compress.cmake)

set(this "(= ${PROJECT_VERSION})")
set(CPACK_COMPONENTS_ALL library development)

set(CPACK_DEBIAN_LIBRARY_PACKAGE_NAME libstripepack${PROJECT_VERSION_MAJOR})
set(CPACK_DEBIAN_LIBRARY_PACKAGE_SECTION libs)
set(CPACK_DEBIAN_LIBRARY_DESCRIPTION "reads packs of image datasets on parallel file systems
libstripepack opens packs, which hold an image dataset in a few large,
checksummed shards whose chunks lie on the stripes of a parallel file
system, and hands their samples to the ranks of a training run: shuffled,
read ahead, and resumed where they stopped.")

file(WRITE ${CMAKE_BINARY_DIR}/debian/triggers "activate-noawait ldconfig\n")
set(CPACK_DEBIAN_LIBRARY_PACKAGE_CONTROL_EXTRA ${CMAKE_BINARY_DIR}/debian/triggers)

set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_NAME libstripepack-dev)
set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_SECTION libdevel)
set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_DEPENDS "${CPACK_DEBIAN_LIBRARY_PACKAGE_NAME} ${this}")
set(CPACK_DEBIAN_DEVELOPMENT_DESCRIPTION "reads packs of image datasets - C and C++ headers
The headers of libstripepack, which reads packs of image datasets, with its
files for CMake and pkg-config, and trainers in C, C++ and Python as
samples.")

if(TARGET stripepack)
  list(APPEND CPACK_COMPONENTS_ALL tools)
  set(CPACK_DEBIAN_TOOLS_PACKAGE_NAME stripepack)
  set(CPACK_DEBIAN_TOOLS_PACKAGE_SECTION utils)
  set(CPACK_DEBIAN_TOOLS_DESCRIPTION "packs image datasets for parallel file systems
stripepack turns a folder or list of images into a pack: a few large,
checksummed shards, whose chunks lie on the stripes of a parallel file
system, and an index. It verifies, repairs, lists, compares and extracts
packs, and measures how fast they are read.")
endif()
if(TARGET spk_plugin_mpich OR TARGET spk_plugin_openmpi OR TARGET spk_plugin_mpi)
  list(APPEND CPACK_COMPONENTS_ALL mpi)
  set(CPACK_DEBIAN_MPI_PACKAGE_NAME stripepack-mpi)
  set(CPACK_DEBIAN_MPI_PACKAGE_SECTION utils)
  # One of them suffices, and a site may have its own.
  set(CPACK_DEBIAN_MPI_PACKAGE_SHLIBDEPS OFF)
  set(CPACK_DEBIAN_MPI_PACKAGE_DEPENDS "stripepack ${this}")
  set(CPACK_DEBIAN_MPI_PACKAGE_SUGGESTS "mpich, openmpi-bin")
  set(CPACK_DEBIAN_MPI_DESCRIPTION "runs stripepack on many nodes by mpirun
The parts of stripepack that talk to MPICH and Open MPI, so that mpirun
starts it on many nodes, which pack, prove and export together.")
endif()
if(TARGET spk_image)
  list(APPEND CPACK_COMPONENTS_ALL image image-development)
  set(image libstripepack-image${PROJECT_VERSION_MAJOR})
  set(CPACK_DEBIAN_IMAGE_PACKAGE_NAME ${image})
  set(CPACK_DEBIAN_IMAGE_PACKAGE_SECTION libs)
  set(CPACK_DEBIAN_IMAGE_DESCRIPTION "decodes pictures into batches for training
libstripepack-image decodes JPEG, PNG and WebP pictures into batches of
pixels, cropped, flipped and resized on the way, with random parts that are
the same wherever they are drawn.")
  set(CPACK_DEBIAN_IMAGE_PACKAGE_CONTROL_EXTRA ${CMAKE_BINARY_DIR}/debian/triggers)
  set(CPACK_DEBIAN_IMAGE-DEVELOPMENT_PACKAGE_NAME libstripepack-image-dev)
  set(CPACK_DEBIAN_IMAGE-DEVELOPMENT_PACKAGE_SECTION libdevel)
  set(CPACK_DEBIAN_IMAGE-DEVELOPMENT_PACKAGE_DEPENDS "${image} ${this}, libstripepack-dev ${this}")
  set(CPACK_DEBIAN_IMAGE-DEVELOPMENT_DESCRIPTION "decodes pictures into batches - C header
The header of libstripepack-image, which decodes JPEG, PNG and WebP pictures
into batches of pixels, with its files for CMake and pkg-config.")
endif()
if(TARGET _stripepack)
  list(APPEND CPACK_COMPONENTS_ALL python)
  # A compiled module is for one minor version.
  set(python ${Python_VERSION_MAJOR}.${Python_VERSION_MINOR})
  math(EXPR next_python "${Python_VERSION_MINOR} + 1")
  string(PREPEND next_python ${Python_VERSION_MAJOR}.)
  set(CPACK_DEBIAN_PYTHON_PACKAGE_NAME python3-stripepack)
  set(CPACK_DEBIAN_PYTHON_PACKAGE_SECTION python)
  set(CPACK_DEBIAN_PYTHON_PACKAGE_DEPENDS
    "${CPACK_DEBIAN_LIBRARY_PACKAGE_NAME} ${this}, python3-numpy, python3 (>= ${python}~), python3 (<< ${next_python})")
  if(TARGET _image)
    string(PREPEND CPACK_DEBIAN_PYTHON_PACKAGE_DEPENDS "${image} ${this}, ")
  endif()
  set(CPACK_DEBIAN_PYTHON_DESCRIPTION "reads packs of image datasets - Python module
The Python module stripepack, over libstripepack: packs as sequences of
samples, loaders that shuffle, read ahead and resume, datasets for PyTorch,
and pictures decoded into NumPy arrays where libstripepack-image is there.")
endif()

# Debian's changelog, made of CHANGELOG.md; compressed when it is packed.
execute_process(
  COMMAND ${CMAKE_COMMAND} -DSOURCE=${PROJECT_SOURCE_DIR}/CHANGELOG.md
    -DOUTPUT=${CMAKE_BINARY_DIR}/debian/changelog -DVERSION=${PROJECT_VERSION}
    "-DMAINTAINER=${SPK_DEB_MAINTAINER}" -P ${PROJECT_SOURCE_DIR}/cmake/debian-changelog.cmake
  COMMAND_ERROR_IS_FATAL ANY)
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/CHANGELOG.md)

# Debian wants both in each package; a full installation (make install) leaves these out.
foreach(component IN LISTS CPACK_COMPONENTS_ALL)
  string(TOUPPER ${component} upper)
  set(package ${CPACK_DEBIAN_${upper}_PACKAGE_NAME})
  install(FILES cmake/debian-copyright RENAME copyright EXCLUDE_FROM_ALL
    DESTINATION ${CMAKE_INSTALL_DATAROOTDIR}/doc/${package} COMPONENT ${component})
  install(FILES ${CMAKE_BINARY_DIR}/debian/changelog EXCLUDE_FROM_ALL
    DESTINATION ${CMAKE_INSTALL_DATAROOTDIR}/doc/${package} COMPONENT ${component})
endforeach()
include(CPack)
