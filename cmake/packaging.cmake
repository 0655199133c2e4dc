# `make -f Makefile.dist deb`: Debian packages by CPack. Configure with
# CMAKE_INSTALL_PREFIX=/usr, so that the folders are Debian's.
set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_NAME stripepack)
set(CPACK_PACKAGE_CONTACT "The stripepack authors <stripepack@localhost>" CACHE STRING
  "Maintainer named in packages")
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

set(CPACK_PRE_BUILD_SCRIPTS ${PROJECT_SOURCE_DIR}/cmake/debian-man.cmake)

set(this "(= ${PROJECT_VERSION})")
set(CPACK_COMPONENTS_ALL library development)

set(CPACK_DEBIAN_LIBRARY_PACKAGE_NAME libstripepack${PROJECT_VERSION_MAJOR})
set(CPACK_DEBIAN_LIBRARY_PACKAGE_SECTION libs)
set(CPACK_DEBIAN_LIBRARY_DESCRIPTION "libstripepack reads packs: image datasets in large, stripe-aligned shards that
a parallel file system serves to many training ranks at full speed.")

file(WRITE ${CMAKE_BINARY_DIR}/debian/triggers "activate-noawait ldconfig\n")
set(CPACK_DEBIAN_LIBRARY_PACKAGE_CONTROL_EXTRA ${CMAKE_BINARY_DIR}/debian/triggers)

set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_NAME libstripepack-dev)
set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_SECTION libdevel)
set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_DEPENDS "${CPACK_DEBIAN_LIBRARY_PACKAGE_NAME} ${this}")
set(CPACK_DEBIAN_DEVELOPMENT_DESCRIPTION "The C and C++ headers of libstripepack, for CMake and pkg-config.")

if(TARGET stripepack)
  list(APPEND CPACK_COMPONENTS_ALL tools)
  set(CPACK_DEBIAN_TOOLS_PACKAGE_NAME stripepack)
  set(CPACK_DEBIAN_TOOLS_PACKAGE_SECTION utils)
  set(CPACK_DEBIAN_TOOLS_DESCRIPTION "stripepack turns a folder or list of images into a pack: a few large,
checksummed, stripe-aligned shards and an index. It verifies, lists, repairs
and extracts packs as well.")
endif()
if(TARGET spk_image)
  list(APPEND CPACK_COMPONENTS_ALL image image-development)
  set(image libstripepack-image${PROJECT_VERSION_MAJOR})
  set(CPACK_DEBIAN_IMAGE_PACKAGE_NAME ${image})
  set(CPACK_DEBIAN_IMAGE_PACKAGE_SECTION libs)
  set(CPACK_DEBIAN_IMAGE_DESCRIPTION "libstripepack-image decodes JPEG, PNG and WebP pictures into batches,
cropped and resized on the way.")
  set(CPACK_DEBIAN_IMAGE_PACKAGE_CONTROL_EXTRA ${CMAKE_BINARY_DIR}/debian/triggers)
  set(CPACK_DEBIAN_IMAGE-DEVELOPMENT_PACKAGE_NAME libstripepack-image-dev)
  set(CPACK_DEBIAN_IMAGE-DEVELOPMENT_PACKAGE_SECTION libdevel)
  set(CPACK_DEBIAN_IMAGE-DEVELOPMENT_PACKAGE_DEPENDS "${image} ${this}, libstripepack-dev ${this}")
  set(CPACK_DEBIAN_IMAGE-DEVELOPMENT_DESCRIPTION "The C header of libstripepack-image, for CMake and pkg-config.")
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
  set(CPACK_DEBIAN_PYTHON_DESCRIPTION "The Python module stripepack, over libstripepack.")
endif()

# Debian wants a copyright file in each; a full installation (make install) leaves these out.
foreach(component IN LISTS CPACK_COMPONENTS_ALL)
  string(TOUPPER ${component} upper)
  set(package ${CPACK_DEBIAN_${upper}_PACKAGE_NAME})
  install(FILES cmake/debian-copyright RENAME copyright EXCLUDE_FROM_ALL
    DESTINATION ${CMAKE_INSTALL_DATAROOTDIR}/doc/${package} COMPONENT ${component})
endforeach()
include(CPack)
