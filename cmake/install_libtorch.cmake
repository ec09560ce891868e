# Gives the installed program its LibTorch, as <prefix>/<torch_destination>/torch/lib and, for the
# packages of NVIDIA that came with it, <prefix>/<torch_destination>/nvidia. Run by `cmake --install`.
#
#   torch_folder       folder with lib/libtorch_cpu.so
#   torch_nvidia       folder of the NVIDIA packages beside it; need not exist
#   torch_version      for the message
#   torch_cuda         whether the program uses the CUDA libraries
#   torch_mode         COPY   copies the libraries, so that nothing outside the prefix is needed
#                      LINK   links to the folders, which must stay where they are
#                      AUTO   COPY where other users can enter the prefix but cannot read LibTorch
#   torch_destination  relative to the prefix

# Sets `result` to whether users other than the owner can enter all folders of an absolute path. Folders
# that do not exist yet count as open: this installation makes them.
function(others_can_enter path result)
  set(${result} ON PARENT_SCOPE)
  while(NOT path STREQUAL "/" AND path)
    if(EXISTS "${path}")
      execute_process(COMMAND stat -L -c %A "${path}" OUTPUT_VARIABLE rights
                      OUTPUT_STRIP_TRAILING_WHITESPACE)
      if(NOT rights MATCHES "[xt]$")
        set(${result} OFF PARENT_SCOPE)
        return()
      endif()
    endif()
    cmake_path(GET path PARENT_PATH path)
  endwhile()
endfunction()

# Removes what an earlier installation left, a copy or a link.
function(remove_old name)
  set(old "${destination}/${name}")
  if(IS_SYMLINK "${old}")
    file(REMOVE "${old}")
  else()
    file(REMOVE_RECURSE "${old}")
  endif()
endfunction()

function(link_folder target name)
  remove_old(${name})
  file(MAKE_DIRECTORY "${destination}")
  file(CREATE_LINK "${target}" "${destination}/${name}" SYMBOLIC)
  message(STATUS "Installing: ${destination}/${name} -> ${target}")
  # For install_manifest.txt, which lists what is to be removed.
  set(CMAKE_INSTALL_MANIFEST_FILES ${CMAKE_INSTALL_MANIFEST_FILES} "${link_prefix}/${name}" PARENT_SCOPE)
endfunction()

# Sets `result` to the libraries that the program loads, with those that they load by name at run time.
function(libraries_to_copy result)
  if(torch_cuda)
    file(GLOB libraries "${torch_folder}/lib/*.so" "${torch_folder}/lib/*.so.*"
         "${torch_nvidia}/*/lib/*.so" "${torch_nvidia}/*/lib/*.so.*")
  else()
    file(GET_RUNTIME_DEPENDENCIES LIBRARIES "${torch_folder}/lib/libtorch_cpu.so"
         RESOLVED_DEPENDENCIES_VAR needed UNRESOLVED_DEPENDENCIES_VAR missing
         POST_EXCLUDE_REGEXES "^/lib" "^/usr/lib")
    set(libraries "${torch_folder}/lib/libtorch_cpu.so" ${needed})
  endif()
  # For Python, for profilers, or needed by none of the others.
  list(FILTER libraries EXCLUDE REGEX
       "/(libtorch_python|libshm|libnvperf_|libpcsamplingutil|libcheckpoint|libcusolverMg)[^/]*$|[.]alt[.]so")
  set(${result} ${libraries} PARENT_SCOPE)
endfunction()

function(copy_libraries)
  remove_old(torch)
  remove_old(nvidia)
  libraries_to_copy(libraries)
  foreach(library IN LISTS libraries)
    cmake_path(GET library PARENT_PATH folder)
    if(folder MATCHES "/nvidia/([^/]+/lib)$")
      set(folder "nvidia/${CMAKE_MATCH_1}")
    else()
      set(folder "torch/lib")
    endif()
    file(INSTALL DESTINATION "${CMAKE_INSTALL_PREFIX}/${torch_destination}/${folder}" TYPE SHARED_LIBRARY
         FILES "${library}" FOLLOW_SYMLINK_CHAIN)
  endforeach()
  set(CMAKE_INSTALL_MANIFEST_FILES ${CMAKE_INSTALL_MANIFEST_FILES} PARENT_SCOPE)
endfunction()

if(NOT torch_mode MATCHES "^(AUTO|COPY|LINK)$")
  message(FATAL_ERROR "TPUDIST_INSTALL_TORCH is '${torch_mode}'; give AUTO, COPY or LINK")
endif()
if(NOT EXISTS "${torch_folder}/lib/libtorch_cpu.so")
  message(FATAL_ERROR "LibTorch is no longer in ${torch_folder}. Give the folder that has it: "
          "cmake -DTPUDIST_TORCH_ROOT=<folder> <build folder>, then build and install again.")
endif()

set(link_prefix "${CMAKE_INSTALL_PREFIX}/${torch_destination}")
set(destination "$ENV{DESTDIR}${link_prefix}")
others_can_enter("${torch_folder}/lib" torch_open)
others_can_enter("${CMAKE_INSTALL_PREFIX}" prefix_open)
if(torch_mode STREQUAL "AUTO")
  set(torch_mode LINK)
  if(prefix_open AND NOT torch_open)
    set(torch_mode COPY)
  endif()
endif()
# The libraries of a conda environment are those of all its programs: they are never copied.
if(torch_mode STREQUAL "COPY" AND EXISTS "${torch_folder}/conda-meta")
  message(WARNING "LibTorch is part of the conda environment ${torch_folder}: it is linked, not copied.")
  set(torch_mode LINK)
endif()

if(torch_mode STREQUAL "COPY")
  message(STATUS "Copying LibTorch ${torch_version} from ${torch_folder}")
  copy_libraries()
  message(STATUS "tpudist needs nothing of ${torch_folder}: LibTorch was copied.")
else()
  link_folder("${torch_folder}" torch)
  if(EXISTS "${torch_nvidia}")
    link_folder("${torch_nvidia}" nvidia)
  endif()
  message(STATUS "tpudist needs LibTorch ${torch_version} in ${torch_folder}: keep that folder.")
  if(prefix_open AND NOT torch_open)
    message(WARNING "Other users cannot read ${torch_folder}, so tpudist will not start for them. "
            "Install with -DTPUDIST_INSTALL_TORCH=COPY, or put LibTorch where all can read it: "
            "TPUDIST_TORCH_VENV=/opt/tpudist/torch scripts/setup.sh")
  endif()
endif()
