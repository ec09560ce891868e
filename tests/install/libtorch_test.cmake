# Tests cmake/install_libtorch.cmake on a LibTorch of three tiny libraries.
#
#   cmake -DSCRIPT=<install_libtorch.cmake> -DCOMPILER=<cc> -DFOLDER=<scratch> -P libtorch_test.cmake

function(expect)
  if(NOT (${ARGN}))
    message(SEND_ERROR "expected: ${ARGN}")
  endif()
endfunction()

# A LibTorch whose libtorch_cpu.so needs libcudart.so.13 of an NVIDIA package beside it.
file(REMOVE_RECURSE "${FOLDER}")
set(site "${FOLDER}/owner/site")
file(MAKE_DIRECTORY "${site}/torch/lib" "${site}/nvidia/cu13/lib" "${site}/nvidia/cudnn/lib")
file(WRITE "${FOLDER}/empty.c" "int nothing(void) { return 0; }\n")
function(make_library library)
  execute_process(COMMAND "${COMPILER}" -shared -fPIC "${FOLDER}/empty.c" -o "${site}/${library}"
                  ${ARGN} COMMAND_ERROR_IS_FATAL ANY)
endfunction()
make_library(nvidia/cu13/lib/libcudart.so.13 -Wl,-soname,libcudart.so.13)
make_library(nvidia/cudnn/lib/libcudnn.so.9 -Wl,-soname,libcudnn.so.9)
make_library(nvidia/cu13/lib/libnvrtc.alt.so.13)
make_library(nvidia/cu13/lib/libnvperf_host.so)
make_library(torch/lib/libtorch_python.so)
make_library(torch/lib/libtorch_cuda.so)
make_library(torch/lib/libtorch_cpu.so -Wl,--no-as-needed -Wl,--disable-new-dtags
             -Wl,-rpath,$ORIGIN/../../nvidia/cu13/lib "${site}/nvidia/cu13/lib/libcudart.so.13")

# Installs into FOLDER/prefix as `cmake --install` would; FILES is what it noted for the manifest.
macro(install_torch mode cuda)
  set(CMAKE_INSTALL_PREFIX "${FOLDER}/prefix")
  set(CMAKE_INSTALL_MANIFEST_FILES "")
  set(torch_folder "${site}/torch")
  set(torch_nvidia "${site}/nvidia")
  set(torch_version 1.2.3)
  set(torch_cuda ${cuda})
  set(torch_mode ${mode})
  set(torch_destination lib/tpudist)
  include("${SCRIPT}")
  set(FILES "${CMAKE_INSTALL_MANIFEST_FILES}")
endmacro()
set(installed "${FOLDER}/prefix/lib/tpudist")

# Everybody can read it where it is: links are enough.
file(CHMOD "${FOLDER}/owner" PERMISSIONS OWNER_READ OWNER_WRITE OWNER_EXECUTE
     GROUP_READ GROUP_EXECUTE WORLD_READ WORLD_EXECUTE)
install_torch(LINK ON)
expect(IS_SYMLINK "${installed}/torch")
expect(EXISTS "${installed}/torch/lib/libtorch_cpu.so")
expect(EXISTS "${installed}/nvidia/cu13/lib/libcudart.so.13")
list(FIND FILES "${installed}/torch" place)
expect(place GREATER -1)

# A copy takes the place of the link and leaves out what only Python and profilers need.
install_torch(COPY ON)
expect(NOT IS_SYMLINK "${installed}/torch")
expect(EXISTS "${installed}/torch/lib/libtorch_cuda.so")
expect(EXISTS "${installed}/nvidia/cudnn/lib/libcudnn.so.9")
expect(NOT EXISTS "${installed}/torch/lib/libtorch_python.so")
expect(NOT EXISTS "${installed}/nvidia/cu13/lib/libnvrtc.alt.so.13")
expect(NOT EXISTS "${installed}/nvidia/cu13/lib/libnvperf_host.so")
expect(EXISTS "${site}/torch/lib/libtorch_python.so")  # the old link was removed, not what it led to
list(FIND FILES "${installed}/torch/lib/libtorch_cpu.so" place)
expect(place GREATER -1)

# Without the GPU only what libtorch_cpu.so needs.
install_torch(COPY OFF)
expect(EXISTS "${installed}/torch/lib/libtorch_cpu.so")
expect(EXISTS "${installed}/nvidia/cu13/lib/libcudart.so.13")
expect(NOT EXISTS "${installed}/torch/lib/libtorch_cuda.so")
expect(NOT EXISTS "${installed}/nvidia/cudnn")

# A link takes the place of a copy.
install_torch(LINK ON)
expect(IS_SYMLINK "${installed}/torch")

# In a folder that only its owner can enter: copied, unless the prefix is as closed.
others_can_enter("${FOLDER}" open)
if(open)
  file(CHMOD "${FOLDER}/owner" PERMISSIONS OWNER_READ OWNER_WRITE OWNER_EXECUTE)
  install_torch(AUTO ON)
  expect(NOT IS_SYMLINK "${installed}/torch")
  file(CHMOD "${FOLDER}/prefix" PERMISSIONS OWNER_READ OWNER_WRITE OWNER_EXECUTE)
  install_torch(AUTO ON)
  expect(IS_SYMLINK "${installed}/torch")
else()
  message(STATUS "AUTO is not tested: others cannot enter ${FOLDER}")
endif()
