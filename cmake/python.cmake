# Which Python the module is built for and the Python-driven tests run with. -DPython_EXECUTABLE=
# decides. Otherwise an active virtual environment or conda, then, on Debian and its kin, the
# system's own python3, because python3-dev, python3-numpy and pybind11-dev belong to it and a
# python3 that lies before it on PATH (pyenv, say) has none of them; elsewhere, python3 on PATH.
if(DEFINED Python3_EXECUTABLE AND NOT DEFINED Python_EXECUTABLE)
  set(Python_EXECUTABLE ${Python3_EXECUTABLE})
endif()
if(NOT DEFINED Python_EXECUTABLE AND NOT DEFINED ENV{VIRTUAL_ENV} AND NOT DEFINED ENV{CONDA_PREFIX}
   AND EXISTS /etc/debian_version AND EXISTS /usr/bin/python3)
  set(Python_EXECUTABLE /usr/bin/python3)
endif()
set(Python_FIND_STRATEGY LOCATION)
set(Python_FIND_VIRTUALENV FIRST)
find_package(Python 3.8 QUIET COMPONENTS Interpreter OPTIONAL_COMPONENTS Development.Module)

set(SPK_HAVE_PYTHON OFF)
if(NOT SPK_BUILD_PYTHON)
  message(STATUS "Python module: off (SPK_BUILD_PYTHON=OFF)")
elseif(NOT Python_Development.Module_FOUND)
  message(STATUS "Python module: off (no Python headers for ${Python_EXECUTABLE}: "
    "`apt install python3-dev`, or name another one by -DPython_EXECUTABLE=)")
else()
  set(PYBIND11_FINDPYTHON ON)
  find_package(pybind11 2.6 CONFIG QUIET)
  if(NOT pybind11_FOUND)  # pip and conda keep it inside Python's own folders
    execute_process(COMMAND ${Python_EXECUTABLE} -m pybind11 --cmakedir
      OUTPUT_VARIABLE folder OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET RESULT_VARIABLE failed)
    if(NOT failed)
      find_package(pybind11 2.6 CONFIG QUIET HINTS ${folder})
    endif()
  endif()
  if(pybind11_FOUND)
    set(SPK_HAVE_PYTHON ON)
    message(STATUS "Python module: for ${Python_EXECUTABLE} ${Python_VERSION}, "
      "pybind11 ${pybind11_VERSION}")
  else()
    message(STATUS "Python module: off (no pybind11: `apt install pybind11-dev`)")
  endif()
endif()

set(SPK_PYTHON_INSTALL_DIR "lib/python${Python_VERSION_MAJOR}.${Python_VERSION_MINOR}/site-packages"
  CACHE STRING "Where the Python package is installed, below the prefix")
