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

# NVIDIA's installer does not put nvcc on the path.
find_program(nvcc nvcc PATHS /usr/local/cuda/bin NO_CACHE)
if(nvcc AND NOT DEFINED ENV{CUDACXX})
  set(ENV{CUDACXX} "${nvcc}")
endif()
include(CheckLanguage)
check_language(CUDA)
if(TPUDIST_CUDA STREQUAL "AUTO" AND NOT CMAKE_CUDA_COMPILER)
  message(STATUS "No nvcc: networks run on the CPU only")
  return()
endif()
if(CMAKE_CUDA_COMPILER AND LibTorch_CUDA_MAJOR)
  execute_process(COMMAND "${CMAKE_CUDA_COMPILER}" --version OUTPUT_VARIABLE version ERROR_QUIET)
  if(version MATCHES "release ([0-9]+)" AND NOT CMAKE_MATCH_1 EQUAL LibTorch_CUDA_MAJOR)
    set(misfit "nvcc is of CUDA ${CMAKE_MATCH_1}, and LibTorch's runtime of CUDA ${LibTorch_CUDA_MAJOR}")
    if(TPUDIST_CUDA STREQUAL "AUTO")
      message(STATUS "${misfit}: networks run on the CPU only")
      return()
    endif()
    message(FATAL_ERROR "${misfit}: give an nvcc of CUDA ${LibTorch_CUDA_MAJOR} (-DCMAKE_CUDA_COMPILER=...), "
                        "or build without kernels for GPUs (-DTPUDIST_CUDA=OFF)")
  endif()
endif()

# Machine code for these, as far as nvcc knows them, and PTX of the newest for later GPUs.
if(NOT DEFINED CMAKE_CUDA_ARCHITECTURES AND CMAKE_CUDA_COMPILER)
  execute_process(COMMAND "${CMAKE_CUDA_COMPILER}" --list-gpu-code OUTPUT_VARIABLE known ERROR_QUIET)
  foreach(architecture 75 80 90 100)
    if(known MATCHES "sm_${architecture}\n")
      list(APPEND CMAKE_CUDA_ARCHITECTURES ${architecture}-real)
    endif()
  endforeach()
  string(REGEX REPLACE "-real$" "" CMAKE_CUDA_ARCHITECTURES "${CMAKE_CUDA_ARCHITECTURES}")
endif()
enable_language(CUDA)
set(CMAKE_CUDA_RUNTIME_LIBRARY None)  # the one that LibTorch uses is linked instead
set(TPUDIST_CUDA_KERNELS ON)

# A product and a sum are never contracted to one rounding, quotients and roots are rounded right: a kernel
# gives the bits of its emulation on the CPU (tests/cuda_emulation), exp apart, and loses nothing, since memory
# is its limit.
add_compile_options("$<$<COMPILE_LANGUAGE:CUDA>:-fmad=false;-prec-div=true;-prec-sqrt=true;-ftz=false>")

# A kernel that spills registers or has a stack frame is slow: ptxas warns of local memory.
if(werror)
  add_compile_options("$<$<COMPILE_LANGUAGE:CUDA>:-Werror=all-warnings;-Xptxas=-Werror,-warn-lmem-usage,-warn-spills>")
endif()
