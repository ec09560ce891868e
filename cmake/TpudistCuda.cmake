# Turns on nvcc where it is wanted and found. Sets TPUDIST_CUDA_KERNELS.
# Without it networks run on the CPU only; NCCL needs no nvcc.

set(TPUDIST_CUDA_KERNELS OFF)
if(NOT TPUDIST_TORCH OR (NOT TPUDIST_CUDA AND NOT TPUDIST_CUDA STREQUAL "AUTO"))
  return()
endif()
if(NOT LibTorch_CUDA)
  message(STATUS "LibTorch without CUDA: no GPU")
  return()
endif()

if(TPUDIST_CUDA STREQUAL "AUTO")
  include(CheckLanguage)
  check_language(CUDA)
  if(NOT CMAKE_CUDA_COMPILER)
    message(STATUS "No nvcc: networks run on the CPU only")
    return()
  endif()
endif()

if(NOT DEFINED CMAKE_CUDA_ARCHITECTURES)
  set(CMAKE_CUDA_ARCHITECTURES "80-real;90")  # machine code for both, PTX for later ones
endif()
enable_language(CUDA)
set(CMAKE_CUDA_RUNTIME_LIBRARY None)  # the one that LibTorch uses is linked instead
set(TPUDIST_CUDA_KERNELS ON)
