# Finds what the libraries of core, schema and data are built with, here and for those who use them from an installation.
# Targets are IMPORTED, so their headers count as system headers.

# A C library without a package file of CMake that all distributions ship: by pkg-config, or where that
# is not installed or knows nothing of it, by header and library. Gives the target <name>::<name>; with
# OPTIONAL, none where it is missing.
find_package(PkgConfig QUIET)
function(tpudist_find_c_library name module header library)
  if(PkgConfig_FOUND)
    pkg_check_modules(${name} QUIET IMPORTED_TARGET GLOBAL ${module})
    if(${name}_FOUND)
      message(STATUS "Found ${name}: ${${name}_LINK_LIBRARIES} (version ${${name}_VERSION})")
      add_library(${name}::${name} INTERFACE IMPORTED GLOBAL)
      target_link_libraries(${name}::${name} INTERFACE PkgConfig::${name})
      set(${name}_LINK_LIBRARIES ${${name}_LINK_LIBRARIES} PARENT_SCOPE)
      return()
    endif()
  endif()
  find_path(${name}_INCLUDE_DIR ${header})
  find_library(${name}_LIBRARY ${library})
  mark_as_advanced(${name}_INCLUDE_DIR ${name}_LIBRARY)
  if(NOT ${name}_INCLUDE_DIR OR NOT ${name}_LIBRARY)
    if("OPTIONAL" IN_LIST ARGN)
      message(STATUS "No ${name}")
      return()
    endif()
    message(FATAL_ERROR "${name} is missing: neither pkg-config module ${module} nor header ${header} and "
            "library ${library} were found. Install it, or name its prefix by -DCMAKE_PREFIX_PATH.")
  endif()
  message(STATUS "Found ${name}: ${${name}_LIBRARY}")
  add_library(${name}::${name} UNKNOWN IMPORTED GLOBAL)
  set_target_properties(${name}::${name} PROPERTIES
    IMPORTED_LOCATION "${${name}_LIBRARY}" INTERFACE_INCLUDE_DIRECTORIES "${${name}_INCLUDE_DIR}")
  set(${name}_LINK_LIBRARIES "${${name}_LIBRARY}" PARENT_SCOPE)
endfunction()

find_package(Threads REQUIRED)
find_package(fmt REQUIRED)
find_package(spdlog REQUIRED)
find_package(yaml-cpp REQUIRED)
find_package(nlohmann_json REQUIRED)
find_package(ZLIB REQUIRED)
tpudist_find_c_library(xxhash libxxhash xxhash.h xxhash)
tpudist_find_c_library(libzip libzip zip.h zip)
tpudist_find_c_library(libdeflate libdeflate libdeflate.h deflate)
tpudist_find_c_library(metis metis metis.h metis OPTIONAL)  # data.segments.by: metis

find_path(TPUDIST_PROTOZERO_INCLUDE protozero/pbf_reader.hpp REQUIRED)
mark_as_advanced(TPUDIST_PROTOZERO_INCLUDE)
add_library(protozero::protozero INTERFACE IMPORTED)
set_target_properties(protozero::protozero PROPERTIES
  INTERFACE_INCLUDE_DIRECTORIES "${TPUDIST_PROTOZERO_INCLUDE}")

# The archive, where there is one: the shared library of Debian loads 30 others, libcurl among them, for files on S3.
set(HDF5_PREFER_PARALLEL OFF)
find_package(HDF5 REQUIRED COMPONENTS C)
function(tpudist_choose_hdf5)
  set(archive "")
  foreach(library IN LISTS HDF5_C_LIBRARIES)
    string(REGEX REPLACE "[.]so$" ".a" library_archive "${library}")
    if(library MATCHES "/libhdf5[^/]*[.]so$" AND EXISTS "${library_archive}" AND NOT TPUDIST_SANITIZE)
      set(archive "${library_archive}")
    endif()
  endforeach()
  set(CMAKE_REQUIRED_INCLUDES ${HDF5_C_INCLUDE_DIRS})
  set(CMAKE_REQUIRED_LIBRARIES "${archive}" sz ZLIB::ZLIB m ${CMAKE_DL_LIBS})
  if(archive)
    include(CheckCSourceCompiles)
    check_c_source_compiles("#include <hdf5.h>\nint main(void) { return H5open(); }" TPUDIST_HDF5_ARCHIVE)
  endif()
  add_library(tpudist_hdf5 INTERFACE IMPORTED GLOBAL)
  if(NOT archive OR NOT TPUDIST_HDF5_ARCHIVE)
    # zlib: the serial HDF5 library calls it without naming it to the linker.
    target_link_libraries(tpudist_hdf5 INTERFACE hdf5::hdf5 ZLIB::ZLIB)
    return()
  endif()
  target_include_directories(tpudist_hdf5 INTERFACE ${HDF5_C_INCLUDE_DIRS})
  target_link_libraries(tpudist_hdf5 INTERFACE ${CMAKE_REQUIRED_LIBRARIES})
  # Its code is made for programs: in a module it must see standard streams of its own.
  set(in_module "$<STREQUAL:$<TARGET_PROPERTY:TYPE>,MODULE_LIBRARY>")
  target_sources(tpudist_hdf5 INTERFACE "$<${in_module}:${CMAKE_CURRENT_FUNCTION_LIST_DIR}/streams_of_archive.c>")
  target_link_options(tpudist_hdf5 INTERFACE
    "$<${in_module}:LINKER:--wrap=stderr,--wrap=stdout,--exclude-libs,ALL>")
endfunction()
tpudist_choose_hdf5()
