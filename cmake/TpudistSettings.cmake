# Language level, warnings, sanitizers and tools: everything that holds for all targets alike.

if(NOT CMAKE_BUILD_TYPE AND NOT CMAKE_CONFIGURATION_TYPES)
  set(CMAKE_BUILD_TYPE Release CACHE STRING "Build type" FORCE)
endif()

set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_CUDA_STANDARD 17)
set(CMAKE_CUDA_STANDARD_REQUIRED ON)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)

# Neither -march=native nor -ffast-math: a run must give the same bits on every machine of a cluster.
# GCC 12 warns of overlapping copies in `"text" + string` where there are none (GCC bug 105651), and of writes
# outside of strings and vectors that it has inlined, where their headers are precompiled.
add_compile_options(
  "$<$<COMPILE_LANGUAGE:CXX>:-Wall;-Wextra>"
  "$<$<AND:$<COMPILE_LANGUAGE:CXX>,$<CXX_COMPILER_ID:GNU>>:-Wno-restrict;-Wno-array-bounds;-Wno-stringop-overflow;-Wno-stringop-overread>")
# In a batch of files a file's own types look as if another one included them.
if(CMAKE_UNITY_BUILD)
  add_compile_options("$<$<AND:$<COMPILE_LANGUAGE:CXX>,$<CXX_COMPILER_ID:GNU>>:-Wno-subobject-linkage>")
endif()
# A newer compiler has new warnings: they must not stop somebody who only wants to use the program.
if(TPUDIST_WERROR STREQUAL "AUTO")
  set(werror OFF)
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
    set(werror ON)
  endif()
else()
  set(werror ${TPUDIST_WERROR})
endif()
if(werror)
  add_compile_options("$<$<COMPILE_LANGUAGE:CXX>:-Werror>")
endif()

if(TPUDIST_SANITIZE)
  add_compile_options(-fsanitize=${TPUDIST_SANITIZE} -fno-sanitize-recover=all
                      -fno-omit-frame-pointer -g1)
  add_link_options(-fsanitize=${TPUDIST_SANITIZE})
endif()

# A batch of files takes the compiler up to 1.4 GB: no more at once than the memory holds, whatever the cores.
cmake_host_system_information(RESULT memory QUERY TOTAL_PHYSICAL_MEMORY)
math(EXPR compilers "${memory} / 1500 + 1")
set_property(GLOBAL APPEND PROPERTY JOB_POOLS compilers=${compilers})
set(CMAKE_JOB_POOL_COMPILE compilers)

find_program(CCACHE_PROGRAM ccache)
mark_as_advanced(CCACHE_PROGRAM)
if(CCACHE_PROGRAM)
  foreach(language C CXX CUDA)
    if(NOT DEFINED CMAKE_${language}_COMPILER_LAUNCHER)
      # The sloppiness is what ccache asks for with precompiled headers. With the base directory one build folder gets
      # from it what another one has compiled.
      set(CMAKE_${language}_COMPILER_LAUNCHER "${CMAKE_COMMAND}" -E env CCACHE_BASEDIR=${PROJECT_SOURCE_DIR}
          CCACHE_SLOPPINESS=pch_defines,time_macros,include_file_mtime,include_file_ctime
          "${CCACHE_PROGRAM}")
    endif()
  endforeach()
endif()
