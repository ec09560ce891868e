# Finds every library. Targets are IMPORTED, so their headers count as system headers.

find_package(Threads REQUIRED)
find_package(PkgConfig REQUIRED)
find_package(fmt REQUIRED)
find_package(spdlog REQUIRED)
find_package(yaml-cpp REQUIRED)
find_package(nlohmann_json REQUIRED)
find_package(ZLIB REQUIRED)
find_package(METIS REQUIRED)
pkg_check_modules(xxhash REQUIRED IMPORTED_TARGET libxxhash)
pkg_check_modules(libzip REQUIRED IMPORTED_TARGET libzip)
pkg_check_modules(libdeflate REQUIRED IMPORTED_TARGET libdeflate)

set(HDF5_PREFER_PARALLEL OFF)
find_package(HDF5 REQUIRED COMPONENTS C)

if(TPUDIST_TORCH)
  find_package(MPI REQUIRED COMPONENTS C)
  find_package(CLI11 REQUIRED)
  find_package(LibTorch REQUIRED)
  # The build tree finds the libraries where they were linked; for an installed tpudist see
  # TpudistInstall.cmake.
  set(CMAKE_BUILD_RPATH ${LibTorch_RPATH})
endif()

# MPI without its C++ bindings, which are gone from the standard and full of warnings.
if(TPUDIST_TORCH)
  add_library(tpudist_mpi INTERFACE)
  target_link_libraries(tpudist_mpi INTERFACE MPI::MPI_C)
  target_compile_definitions(tpudist_mpi INTERFACE OMPI_SKIP_MPICXX)
endif()
