# For the Python package: Python's headers and nanobind (`pip install nanobind`) of the Python that CMake finds, or of
# -DPython_EXECUTABLE=.../bin/python. TPUDIST_PYTHON becomes ON or OFF.
set(found OFF)
if(TPUDIST_PYTHON AND NOT TPUDIST_SANITIZE)
  find_package(Python 3.10 QUIET COMPONENTS Interpreter Development.Module)
  if(Python_Development.Module_FOUND)
    execute_process(COMMAND "${Python_EXECUTABLE}" -m nanobind --cmake_dir
                    OUTPUT_VARIABLE nanobind_hint OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
    find_package(nanobind CONFIG QUIET HINTS "${nanobind_hint}")
    set(found ${nanobind_FOUND})
  endif()
  if(NOT found AND TPUDIST_PYTHON STREQUAL "AUTO")
    message(STATUS "No Python headers or no nanobind: the Python package is left out")
  elseif(NOT found)
    message(FATAL_ERROR "TPUDIST_PYTHON is ON, and Python >= 3.10 has no headers, or no nanobind (pip install nanobind); "
            "-DPython_EXECUTABLE names another Python")
  endif()
endif()
set(TPUDIST_PYTHON ${found})
