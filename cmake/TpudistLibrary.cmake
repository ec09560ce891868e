# tpudist_library(<name> LIBS <library>...)
#
# The static library tpudist_<name> (alias tpudist::<name>) of all sources of the current folder.
# `LIBS` are public: whoever links the library gets them too. Includes are written from the root
# of the repository. A folder without sources gives a library of headers.
function(tpudist_library name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "" "LIBS;EXCLUDE")

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
  if(kernels)
    target_compile_definitions(${target} PUBLIC TPUDIST_WITH_CUDA_KERNELS)
  endif()
endfunction()
