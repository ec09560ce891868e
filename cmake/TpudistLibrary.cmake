# tpudist_library(LIBS <library>... [EXCLUDE <file>...] [PCH <header>])
#
# The static library of all sources of the current folder, named after it: data/npz gives the target
# tpudist_data_npz with the alias tpudist::data_npz. `LIBS` are public: whoever links the library gets
# them too. Includes are written from the root of the repository. A folder without sources gives a
# library of headers. With PCH the header is precompiled for this library, and for others by
# tpudist_reuse_pch(<target> <name>).
function(tpudist_library)
  cmake_parse_arguments(PARSE_ARGV 0 arg "" "PCH" "LIBS;EXCLUDE")
  cmake_path(RELATIVE_PATH CMAKE_CURRENT_SOURCE_DIR BASE_DIRECTORY "${PROJECT_SOURCE_DIR}"
             OUTPUT_VARIABLE folder)
  string(REPLACE "/" "_" name "${folder}")

  file(GLOB sources CONFIGURE_DEPENDS "${CMAKE_CURRENT_SOURCE_DIR}/*.cpp")
  if(TPUDIST_CUDA_KERNELS)
    file(GLOB kernels CONFIGURE_DEPENDS "${CMAKE_CURRENT_SOURCE_DIR}/*.cu")
    list(APPEND sources ${kernels})
  endif()
  foreach(file IN LISTS arg_EXCLUDE)
    list(REMOVE_ITEM sources "${CMAKE_CURRENT_SOURCE_DIR}/${file}")
  endforeach()

  set(target tpudist_${name})
  if(sources)
    set(scope PUBLIC)
    add_library(${target} STATIC ${sources})
  else()
    set(scope INTERFACE)
    add_library(${target} INTERFACE)
  endif()
  add_library(tpudist::${name} ALIAS ${target})
  target_include_directories(${target} ${scope} "${PROJECT_SOURCE_DIR}")
  target_link_libraries(${target} ${scope} ${arg_LIBS})
  if(arg_PCH AND TPUDIST_PCH AND sources)
    target_precompile_headers(${target} PRIVATE "$<$<COMPILE_LANGUAGE:CXX>:${arg_PCH}>")
    target_compile_options(${target} PRIVATE "$<$<COMPILE_LANGUAGE:CXX>:-fpch-preprocess>")
  endif()
  if(kernels)
    target_compile_definitions(${target} PUBLIC TPUDIST_WITH_CUDA_KERNELS)
  endif()
endfunction()

# Compiles <target> with the precompiled header of library <name>, if it has one: 1 second instead of
# 6 for a file that includes ATen.
function(tpudist_reuse_pch target name)
  get_target_property(type tpudist_${name} TYPE)
  get_target_property(header tpudist_${name} PRECOMPILE_HEADERS)
  if(header AND NOT type STREQUAL "INTERFACE_LIBRARY")
    target_precompile_headers(${target} REUSE_FROM tpudist_${name})
    target_compile_options(${target} PRIVATE "$<$<COMPILE_LANGUAGE:CXX>:-fpch-preprocess>")
  endif()
endfunction()
