# What `cmake --install` puts into the prefix:
#
#   bin/tpudist, bin/tpudist-train   the programs
#   bin/tpudist-trace-summary        bench/trace_summary.py, for Python 3 alone
#   lib/tpudist/                     LibTorch, or links to where it lies: install_libtorch.cmake
#   lib/cmake/tpudist/, lib/tpudist/*.a, include/tpudist/    for find_package(tpudist): libraries that read shards
#   share/tpudist/                   experiments/, slurm/, scripts/
#   share/doc/tpudist/               README.md, docs/, licences
#   share/bash-completion/completions/, share/zsh/site-functions/, share/fish/vendor_completions.d/: install_completions.cmake
#
# The component `wheel` is what scripts/pack_wheel.py packs, and is not installed otherwise: the package tpudist with
# bin/, share/ and the library of one rank that stands for MPI where there is none.
#
# The programs look for LibTorch beside themselves, in ../lib/tpudist, so the prefix may be moved or
# packed, and neither the build folder nor the folder LibTorch was linked from is needed. Libraries of
# a prefix of their own (conda, modules of a cluster) are found where they were linked.

# The environment variable of the same name wins when installing.
set(TPUDIST_INSTALL_TORCH AUTO CACHE STRING
    "LibTorch of the installed program: COPY, LINK or AUTO (copies where others could not read it)")
set_property(CACHE TPUDIST_INSTALL_TORCH PROPERTY STRINGS AUTO COPY LINK)

include(GNUInstallDirs)
set(torch_destination "${CMAKE_INSTALL_LIBDIR}/tpudist")

# Folders are readable for others whatever the umask of the one who installs.
if(NOT CMAKE_INSTALL_DEFAULT_DIRECTORY_PERMISSIONS)
  set(CMAKE_INSTALL_DEFAULT_DIRECTORY_PERMISSIONS
      OWNER_READ OWNER_WRITE OWNER_EXECUTE GROUP_READ GROUP_EXECUTE WORLD_READ WORLD_EXECUTE)
endif()

# The folders of LibTorch and its NVIDIA packages, as seen from the folder of the programs.
file(RELATIVE_PATH to_libraries "/${CMAKE_INSTALL_BINDIR}" "/${torch_destination}")
set(CMAKE_INSTALL_RPATH "")
foreach(folder IN LISTS LibTorch_RPATH)
  string(REPLACE "${LibTorch_FOLDER}/" "$ORIGIN/${to_libraries}/torch/" folder "${folder}")
  string(REPLACE "${LibTorch_NVIDIA}/" "$ORIGIN/${to_libraries}/nvidia/" folder "${folder}")
  list(APPEND CMAKE_INSTALL_RPATH "${folder}")
endforeach()
# Libraries of other prefixes than the system's, a conda environment or the modules of a cluster.
set(libraries ${HDF5_C_LIBRARIES} ${MPI_C_LIBRARIES} ${xxhash_LINK_LIBRARIES}
    ${libzip_LINK_LIBRARIES} ${libdeflate_LINK_LIBRARIES} ${metis_LINK_LIBRARIES})
foreach(target fmt::fmt spdlog::spdlog yaml-cpp yaml-cpp::yaml-cpp)
  if(TARGET ${target})
    foreach(suffix "" _RELEASE _RELWITHDEBINFO _NOCONFIG _NONE)
      get_target_property(library ${target} IMPORTED_LOCATION${suffix})
      if(library)
        list(APPEND libraries "${library}")
      endif()
    endforeach()
  endif()
endforeach()
foreach(library IN LISTS libraries)
  cmake_path(GET library PARENT_PATH folder)
  if(IS_ABSOLUTE "${folder}" AND NOT folder MATCHES "^/(usr/)?lib(32|64)?(/|$)")
    list(APPEND CMAKE_INSTALL_RPATH "${folder}")
  endif()
endforeach()
list(REMOVE_DUPLICATES CMAKE_INSTALL_RPATH)

install(DIRECTORY experiments slurm DESTINATION "${CMAKE_INSTALL_DATADIR}/tpudist"
        FILES_MATCHING PATTERN "*.yaml" PATTERN "*.json" PATTERN "*.sbatch")
install(PROGRAMS scripts/evaluate_ensemble.sh DESTINATION "${CMAKE_INSTALL_DATADIR}/tpudist/scripts")
install(PROGRAMS bench/trace_summary.py DESTINATION "${CMAKE_INSTALL_BINDIR}" RENAME tpudist-trace-summary)
install(FILES README.md LICENSE NOTICE DESTINATION "${CMAKE_INSTALL_DOCDIR}")
install(DIRECTORY docs DESTINATION "${CMAKE_INSTALL_DOCDIR}")
install(FILES bench/README.md DESTINATION "${CMAKE_INSTALL_DOCDIR}/bench")
install(FILES CHANGELOG.md CONTRIBUTING.md DESTINATION "${CMAKE_INSTALL_DOCDIR}")

install(CODE "
  set(torch_folder \"${LibTorch_FOLDER}\")
  set(torch_nvidia \"${LibTorch_NVIDIA}\")
  set(torch_version \"${LibTorch_VERSION}\")
  set(torch_cuda ${LibTorch_CUDA})
  set(torch_mode ${TPUDIST_INSTALL_TORCH})
  if(NOT \"\$ENV{TPUDIST_INSTALL_TORCH}\" STREQUAL \"\")
    set(torch_mode \"\$ENV{TPUDIST_INSTALL_TORCH}\")
  endif()
  set(torch_destination \"${torch_destination}\")
  include(\"${PROJECT_SOURCE_DIR}/cmake/install_libtorch.cmake\")")
install(CODE "
  set(completion_program \"$<TARGET_FILE:tpudist>\")
  set(completion_data \"${CMAKE_INSTALL_DATADIR}\")
  include(\"${PROJECT_SOURCE_DIR}/cmake/install_completions.cmake\")")

set(wheel_component COMPONENT wheel EXCLUDE_FROM_ALL)
install(FILES python/tpudist_launcher.py DESTINATION . ${wheel_component})
install(DIRECTORY python/tpudist DESTINATION . OPTIONAL ${wheel_component}
        FILES_MATCHING PATTERN "*.py" PATTERN "*.pyi" PATTERN "py.typed" PATTERN "__pycache__" EXCLUDE)
install(DIRECTORY experiments slurm DESTINATION tpudist/share/tpudist ${wheel_component}
        FILES_MATCHING PATTERN "*.yaml" PATTERN "*.sbatch")
include(CheckSymbolExists)
set(CMAKE_REQUIRED_INCLUDES ${MPI_C_INCLUDE_DIRS})
check_symbol_exists(OPEN_MPI mpi.h TPUDIST_OPEN_MPI)
if(TPUDIST_OPEN_MPI)
  add_library(tpudist_one_rank_mpi SHARED python/one_rank_mpi.c)
  target_include_directories(tpudist_one_rank_mpi PRIVATE ${MPI_C_INCLUDE_DIRS})
  set_target_properties(tpudist_one_rank_mpi PROPERTIES
    OUTPUT_NAME mpi SOVERSION 40 LIBRARY_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/one_rank" UNITY_BUILD OFF)
  install(TARGETS tpudist_one_rank_mpi LIBRARY DESTINATION tpudist/one_rank NAMELINK_SKIP ${wheel_component})
endif()

# For find_package(tpudist): the libraries that read data, under the names that they have here (tpudist::data_loading), and
# their headers. They need neither LibTorch nor MPI.
set(TPUDIST_EXPORTED core core_config data_schema data_npz data_hlo data_hdf5 data_shards data_convert data_loading)
set(headers_destination "${CMAKE_INSTALL_INCLUDEDIR}/tpudist")
set(config_destination "${CMAKE_INSTALL_LIBDIR}/cmake/tpudist")

function(tpudist_export target folder)
  string(REPLACE "/" "_" name "${folder}")
  set_target_properties(${target} PROPERTIES EXPORT_NAME ${name})
  target_include_directories(${target} INTERFACE "$<INSTALL_INTERFACE:${headers_destination}>")
  target_compile_features(${target} PUBLIC cxx_std_20)
  install(TARGETS ${target} EXPORT tpudist ARCHIVE DESTINATION "${torch_destination}")
  file(GLOB headers CONFIGURE_DEPENDS "${CMAKE_CURRENT_SOURCE_DIR}/*.hpp")
  install(FILES ${headers} DESTINATION "${headers_destination}/${folder}")
endfunction()

install(EXPORT tpudist NAMESPACE tpudist:: FILE tpudistTargets.cmake DESTINATION "${config_destination}")
include(CMakePackageConfigHelpers)
write_basic_package_version_file(tpudistConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES cmake/tpudistConfig.cmake cmake/TpudistDataDependencies.cmake cmake/streams_of_archive.c
        "${CMAKE_CURRENT_BINARY_DIR}/tpudistConfigVersion.cmake" DESTINATION "${config_destination}")
