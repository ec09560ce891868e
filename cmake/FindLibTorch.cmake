# Finds LibTorch without its own package file, which asks for a CUDA toolkit of its own version.
#
# Hint: TPUDIST_TORCH_ROOT (cache or environment), one of
#   - a site-packages folder that holds torch/ (and nvidia/), i.e. an installed PyPI wheel,
#   - a virtual environment with such a folder,
#   - an unpacked LibTorch with lib/ and include/.
# Default: the active conda environment if it holds version 2.11, else the virtual environment made by
# scripts/setup.sh.
#
# With TPUDIST_GPU=OFF a LibTorch that was built with CUDA is used as if it were for the CPU only: its
# CUDA libraries are neither linked nor loaded. With AUTO that is so where NVIDIA's packages are not all
# there, as scripts/setup.sh installs it without a GPU; with ON that is an error.
#
# Imported targets
#   LibTorch::LibTorch  all of LibTorch, without the headers of CUDA
#   LibTorch::cudart    the CUDA runtime that LibTorch uses (empty for a CPU-only build)
#   LibTorch::cublasLt  the cuBLAS and cuBLASLt that LibTorch uses (empty for a CPU-only build)
#   LibTorch::NCCL      the NCCL that LibTorch uses; in a CPU-only build it only defines TPUDIST_NO_CUDA
# Variables: LibTorch_FOUND, LibTorch_VERSION, LibTorch_CUDA, LibTorch_RPATH, LibTorch_FOLDER (with lib/ and
# include/), LibTorch_CUDA_MAJOR (major version of the CUDA runtime, or empty), LibTorch_NVIDIA (the folder of the
# NVIDIA packages beside it, which need not exist)

set(TPUDIST_TORCH_ROOT "$ENV{TPUDIST_TORCH_ROOT}" CACHE PATH
    "site-packages folder with torch/, or an unpacked LibTorch; empty: that of conda or of scripts/setup.sh")

# Sets `folder` to the one of a LibTorch in `root`, with lib/ and include/, and `version`; without one to NOTFOUND and "".
function(_libtorch_in root folder version)
  file(GLOB candidates "${root}" "${root}/torch" "${root}/lib/python3*/site-packages/torch")
  set(found ${folder}-NOTFOUND)
  foreach(candidate IN LISTS candidates)
    if(EXISTS "${candidate}/lib/libtorch_cpu.so")
      set(found "${candidate}")
    endif()
  endforeach()
  set(numbers "")
  foreach(header torch/headeronly/version.h torch/csrc/api/include/torch/version.h)
    if(NOT numbers AND EXISTS "${found}/include/${header}")
      foreach(part MAJOR MINOR PATCH)
        file(STRINGS "${found}/include/${header}" line REGEX "define TORCH_VERSION_${part} [0-9]")
        string(REGEX MATCH "[0-9]+$" number "${line}")
        list(APPEND numbers ${number})
      endforeach()
    endif()
  endforeach()
  list(JOIN numbers "." numbers)
  set(${folder} "${found}" PARENT_SCOPE)
  set(${version} "${numbers}" PARENT_SCOPE)
endfunction()

set(_torch_root "${TPUDIST_TORCH_ROOT}")
if(NOT _torch_root AND DEFINED ENV{CONDA_PREFIX})
  _libtorch_in("$ENV{CONDA_PREFIX}" _folder _version)
  if(_version MATCHES "^2[.]11[.]")
    set(_torch_root "$ENV{CONDA_PREFIX}")
  endif()
endif()
if(NOT _torch_root)
  if(DEFINED ENV{TPUDIST_TORCH_VENV})
    set(_torch_root "$ENV{TPUDIST_TORCH_VENV}")
  elseif(DEFINED ENV{XDG_CACHE_HOME})
    set(_torch_root "$ENV{XDG_CACHE_HOME}/tpudist/torch-2.11.0")
  else()
    set(_torch_root "$ENV{HOME}/.cache/tpudist/torch-2.11.0")
  endif()
endif()
_libtorch_in("${_torch_root}" LibTorch_FOLDER LibTorch_VERSION)

# NVIDIA's packages lie beside it.
cmake_path(GET LibTorch_FOLDER PARENT_PATH _torch_site)
set(LibTorch_NVIDIA "${_torch_site}/nvidia")

include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(LibTorch
  REQUIRED_VARS LibTorch_FOLDER
  VERSION_VAR LibTorch_VERSION
  REASON_FAILURE_MESSAGE "Looked in '${_torch_root}'. Run scripts/setup.sh, or pass -DTPUDIST_TORCH_ROOT=<folder>, or build the parts without LibTorch with -DTPUDIST_TORCH=OFF.")
if(NOT LibTorch_FOUND OR TARGET LibTorch::LibTorch)
  return()
endif()

# Adds the include folders after all others: the wheel carries a copy of fmt that must not win
# over the installed one.
function(_libtorch_include target)
  list(REMOVE_DUPLICATES ARGN)
  foreach(folder IN LISTS ARGN)
    target_compile_options(${target} INTERFACE
      "SHELL:$<$<COMPILE_LANGUAGE:C,CXX>:-idirafter \"${folder}\">")
  endforeach()
endfunction()

# Finds one library of the nvidia packages, of LibTorch's own folder or of the system, with the
# header that belongs to it; what is not found ends in NOTFOUND.
macro(_libtorch_nvidia variable library header)
  file(GLOB _candidates "${LibTorch_NVIDIA}/*/lib/${library}.so" "${LibTorch_NVIDIA}/*/lib/${library}.so.*"
       "${LibTorch_FOLDER}/lib/${library}*.so*")
  if(_candidates)
    list(GET _candidates 0 ${variable}_LIBRARY)
  else()
    file(GLOB _toolkit /usr/local/cuda/lib64)
    find_library(${variable}_LIBRARY NAMES ${library}.so HINTS ${_toolkit})
  endif()
  file(GLOB _candidates "${LibTorch_NVIDIA}/*/include/${header}")
  if(_candidates)
    list(GET _candidates 0 _header)
    cmake_path(GET _header PARENT_PATH ${variable}_INCLUDE)
  else()
    find_path(${variable}_INCLUDE NAMES ${header} HINTS /usr/local/cuda/include)
  endif()
  cmake_path(GET ${variable}_LIBRARY PARENT_PATH ${variable}_FOLDER)
endmacro()

set(LibTorch_CUDA OFF)
set(LibTorch_CUDA_MAJOR "")
if(TPUDIST_GPU AND EXISTS "${LibTorch_FOLDER}/lib/libtorch_cuda.so")
  set(LibTorch_CUDA ON)
  _libtorch_nvidia(_cudart libcudart cuda_runtime_api.h)
  _libtorch_nvidia(_cublas libcublas cublas_v2.h)
  _libtorch_nvidia(_cublaslt libcublasLt cublasLt.h)
  _libtorch_nvidia(_nccl libnccl nccl.h)
  file(REAL_PATH "${_cudart_LIBRARY}" _cudart_file)
  if(_cudart_file MATCHES "[.]so[.]([0-9]+)")
    set(LibTorch_CUDA_MAJOR ${CMAKE_MATCH_1})
  endif()
  # The headers of the CUDA runtime include others that its wheel does not hold.
  set(_hints "${_cudart_INCLUDE}" "${_cudart_INCLUDE}/cccl"
             /usr/local/cuda/include /usr/local/cuda/include/cccl)
  find_path(LibTorch_CRT_INCLUDE crt/host_config.h HINTS ${_hints})
  find_path(LibTorch_CCCL_INCLUDE nv/target HINTS ${_hints})
  mark_as_advanced(LibTorch_CRT_INCLUDE LibTorch_CCCL_INCLUDE)
  file(GLOB _own_cublas "${LibTorch_NVIDIA}/*/lib/libcublas.so*")
  if((EXISTS "${LibTorch_NVIDIA}" AND NOT _own_cublas)
     OR NOT _cudart_LIBRARY OR NOT _cudart_INCLUDE OR NOT _nccl_LIBRARY OR NOT _nccl_INCLUDE
     OR NOT _cublas_LIBRARY OR NOT _cublas_INCLUDE OR NOT _cublaslt_LIBRARY OR NOT _cublaslt_INCLUDE
     OR NOT LibTorch_CRT_INCLUDE OR NOT LibTorch_CCCL_INCLUDE)
    set(_missing "LibTorch in ${LibTorch_FOLDER} lacks NVIDIA's packages (CUDA runtime, cuBLAS, NCCL, headers). "
                 "For a GPU install the nvcc of CUDA 13, then run TPUDIST_GPU=1 scripts/setup.sh")
    if(NOT TPUDIST_GPU STREQUAL "AUTO")
      message(FATAL_ERROR ${_missing})
    endif()
    set(LibTorch_CUDA OFF)
    message(STATUS "Built for the CPU: " ${_missing})
  endif()
endif()

add_library(LibTorch::LibTorch INTERFACE IMPORTED)
add_library(LibTorch::cudart INTERFACE IMPORTED)
add_library(LibTorch::cublasLt INTERFACE IMPORTED)
add_library(LibTorch::NCCL INTERFACE IMPORTED)

# LibTorch is built with it, and ATen/record_function.h has a member less under it.
target_compile_definitions(LibTorch::LibTorch INTERFACE "$<$<CONFIG:Debug>:NDEBUG>")

set(_lib "${LibTorch_FOLDER}/lib")
set(LibTorch_RPATH "${_lib}")
set(_libraries "${_lib}/libtorch_cpu.so")
set(_core_libraries "${_lib}/libc10.so")

if(LibTorch_CUDA)
  string(PREPEND _libraries "${_lib}/libtorch.so,")
  string(APPEND _libraries ",${_lib}/libtorch_cuda.so")
  list(APPEND _core_libraries "${_lib}/libc10_cuda.so")
  list(APPEND LibTorch_RPATH "${_nccl_FOLDER}" "${_cudart_FOLDER}" "${_cublaslt_FOLDER}")
  list(REMOVE_DUPLICATES LibTorch_RPATH)

  target_link_libraries(LibTorch::cudart INTERFACE "${_cudart_LIBRARY}")
  _libtorch_include(LibTorch::cudart
    "${_cudart_INCLUDE}" "${LibTorch_CRT_INCLUDE}" "${LibTorch_CCCL_INCLUDE}")
  target_link_libraries(LibTorch::cublasLt INTERFACE
    "${_cublas_LIBRARY}" "${_cublaslt_LIBRARY}" LibTorch::cudart)
  _libtorch_include(LibTorch::cublasLt "${_cublaslt_INCLUDE}")
  target_link_libraries(LibTorch::NCCL INTERFACE "${_nccl_LIBRARY}" LibTorch::cudart)
  _libtorch_include(LibTorch::NCCL "${_nccl_INCLUDE}")
else()
  target_compile_definitions(LibTorch::NCCL INTERFACE TPUDIST_NO_CUDA)
endif()

_libtorch_include(LibTorch::LibTorch
  "${LibTorch_FOLDER}/include" "${LibTorch_FOLDER}/include/torch/csrc/api/include")
# libtorch_cuda registers itself when it is loaded and nobody calls it by name: it must be kept.
target_link_libraries(LibTorch::LibTorch INTERFACE
  "-Wl,--push-state,--no-as-needed,${_libraries},--pop-state" ${_core_libraries} $<LINK_ONLY:LibTorch::cudart>)
# libtorch.so exports parts of an older std::filesystem. The system's libstdc++ must come first in the
# search order, or remove_all and others are taken from there and crash.
target_link_options(LibTorch::LibTorch INTERFACE
  "SHELL:-Wl,--push-state,--no-as-needed -lstdc++ -Wl,--pop-state")
# DT_RPATH also serves the libraries that LibTorch itself loads.
target_link_options(LibTorch::LibTorch INTERFACE LINKER:--disable-new-dtags)
target_link_options(LibTorch::NCCL INTERFACE LINKER:--disable-new-dtags)
