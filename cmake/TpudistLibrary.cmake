# tpudist_library(LIBS <library>... [PRIVATE_LIBS <library>...] [FOLDERS <folder>...] [EXCLUDE <file>...]
#                 [PCH <header>... | REUSE_PCH <library>] [QUICK])
#
# The static library of all sources of the current folder and of its FOLDERS, named after it: data/npz gives the
# target tpudist_data_npz with the alias tpudist::data_npz. `LIBS` are public: whoever links the library gets
# them too; of `PRIVATE_LIBS` it does not see the headers. Includes are written from the root of the repository. A folder without sources gives a
# library of headers. With PCH the headers are precompiled for this library; with REUSE_PCH those of
# another one are used; else those of tpudist_core. QUICK stands where speed does not matter: such code is
# optimised less, which takes a third less time.
function(tpudist_library)
  cmake_parse_arguments(PARSE_ARGV 0 arg "QUICK" "REUSE_PCH" "LIBS;PRIVATE_LIBS;FOLDERS;EXCLUDE;PCH")
  cmake_path(RELATIVE_PATH CMAKE_CURRENT_SOURCE_DIR BASE_DIRECTORY "${PROJECT_SOURCE_DIR}"
             OUTPUT_VARIABLE folder)
  string(REPLACE "/" "_" name "${folder}")

  set(patterns "${CMAKE_CURRENT_SOURCE_DIR}/*.cpp")
  foreach(below IN LISTS arg_FOLDERS)
    list(APPEND patterns "${CMAKE_CURRENT_SOURCE_DIR}/${below}/*.cpp")
  endforeach()
  file(GLOB sources CONFIGURE_DEPENDS ${patterns})
  if(TPUDIST_CUDA_KERNELS)
    file(GLOB kernels CONFIGURE_DEPENDS "${CMAKE_CURRENT_SOURCE_DIR}/*.cu")
    set_source_files_properties(${kernels} PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)
    list(APPEND sources ${kernels})
  endif()
  foreach(file IN LISTS arg_EXCLUDE)
    list(REMOVE_ITEM sources "${CMAKE_CURRENT_SOURCE_DIR}/${file}")
  endforeach()

  set(target tpudist_${name})
  if(sources)
    set(scope PUBLIC)
    add_library(${target} STATIC ${sources})
    set_property(GLOBAL APPEND PROPERTY TPUDIST_LIBRARIES ${target})
  else()
    set(scope INTERFACE)
    add_library(${target} INTERFACE)
  endif()
  add_library(tpudist::${name} ALIAS ${target})
  target_include_directories(${target} ${scope} "$<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}>")
  target_link_libraries(${target} ${scope} ${arg_LIBS})
  if(arg_PRIVATE_LIBS)
    target_link_libraries(${target} PRIVATE ${arg_PRIVATE_LIBS})
  endif()
  if(arg_QUICK AND sources)
    tpudist_compile_quickly(${target})
  endif()
  if(arg_PCH)
    tpudist_pch(${target} ${arg_PCH})
  elseif(sources)
    if(NOT arg_REUSE_PCH)
      set(arg_REUSE_PCH tpudist_core)
    endif()
    tpudist_reuse_pch(${target} ${arg_REUSE_PCH})
  endif()
  if(name IN_LIST TPUDIST_EXPORTED)
    tpudist_export(${target} ${folder})
  endif()
endfunction()

function(tpudist_compile_quickly target)
  target_compile_options(${target} PRIVATE $<$<AND:$<CONFIG:Release>,$<COMPILE_LANGUAGE:CXX>>:-O1>)
endfunction()

# What most files include, and what files on LibTorch include: 17 to 31 s of each of them without.
set(TPUDIST_BASE_HEADERS <algorithm> <filesystem> <functional> <map> <memory> <optional> <set> <span> <string>
    <string_view> <vector> <fmt/format.h>)
set(TPUDIST_TORCH_HEADERS ${TPUDIST_BASE_HEADERS} <ATen/ATen.h> <torch/csrc/autograd/custom_function.h>)

# Precompiles the headers for <target>, a library or program.
function(tpudist_pch target)
  if(TPUDIST_PCH)
    list(TRANSFORM ARGN REPLACE "(.+)" "$<$<COMPILE_LANGUAGE:CXX>:\\1>")
    target_precompile_headers(${target} PRIVATE ${ARGN})
    target_compile_options(${target} PRIVATE "$<$<COMPILE_LANGUAGE:CXX>:-fpch-preprocess>")
    set_target_properties(${target} PROPERTIES TPUDIST_PCH_OF ${target})
  endif()
endfunction()

# Compiles <target> with the headers that are precompiled for <library>, if there are any.
function(tpudist_reuse_pch target library)
  get_target_property(type ${target} TYPE)
  if(type STREQUAL "STATIC_LIBRARY")
    tpudist_position_independent(${target} ${library})
  endif()
  get_target_property(owner ${library} TPUDIST_PCH_OF)
  if(owner)
    target_precompile_headers(${target} REUSE_FROM ${owner})
    target_compile_options(${target} PRIVATE "$<$<COMPILE_LANGUAGE:CXX>:-fpch-preprocess>")
  endif()
endfunction()

# The libraries without LibTorch can be linked into the Python extension; precompiled headers want the same options in
# all that use them.
function(tpudist_position_independent target library)
  if(TPUDIST_PYTHON AND library STREQUAL "tpudist_core")
    set_target_properties(${target} PROPERTIES POSITION_INDEPENDENT_CODE ON)
    target_compile_options(${target} PRIVATE $<$<CXX_COMPILER_ID:GNU>:-fno-semantic-interposition>)
  endif()
endfunction()
