# Finds every library, on Debian or in any prefix named by CMAKE_PREFIX_PATH (conda, modules of a cluster).
include(TpudistDataDependencies)
find_package(Boost 1.74 REQUIRED)  # headers only: Boost.Math

if(NOT TPUDIST_TORCH)
  find_package(MPI QUIET COMPONENTS C)
  if(NOT MPI_C_FOUND)
    message(STATUS "No MPI: dist and doctor are left out")
  endif()
else()
  find_package(MPI REQUIRED COMPONENTS C)
  find_package(CLI11 REQUIRED)
  find_package(LibTorch REQUIRED)
  # The build tree finds the libraries where they were linked; for an installed tpudist see
  # TpudistInstall.cmake.
  set(CMAKE_BUILD_RPATH ${LibTorch_RPATH})
endif()

# MPI without its C++ bindings, which are gone from the standard and full of warnings.
if(MPI_C_FOUND)
  add_library(tpudist_mpi INTERFACE)
  target_link_libraries(tpudist_mpi INTERFACE MPI::MPI_C)
  target_compile_definitions(tpudist_mpi INTERFACE OMPI_SKIP_MPICXX)
  if(TPUDIST_SANITIZE MATCHES "address")
    # In front of MPI, so that its functions are found first.
    add_library(tpudist_leaks_of_mpi STATIC "${PROJECT_SOURCE_DIR}/tests/support/leaks_of_mpi.cpp")
    target_link_libraries(tpudist_leaks_of_mpi PUBLIC MPI::MPI_C ${CMAKE_DL_LIBS})
    target_compile_definitions(tpudist_leaks_of_mpi PRIVATE OMPI_SKIP_MPICXX)
    set_property(TARGET tpudist_mpi PROPERTY INTERFACE_LINK_LIBRARIES tpudist_leaks_of_mpi MPI::MPI_C)
  endif()
endif()

# NCCL and the CUDA runtime, which come with LibTorch. Without it dist is built for the host alone. Only the .cpp files
# of dist see TPUDIST_NO_CUDA.
add_library(tpudist_nccl INTERFACE)
if(TPUDIST_TORCH)
  target_link_libraries(tpudist_nccl INTERFACE LibTorch::NCCL)
else()
  target_compile_definitions(tpudist_nccl INTERFACE TPUDIST_NO_CUDA)
endif()
