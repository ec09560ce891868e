# tpudist_test(<name> [PROGRAM <suffix> [ALL]] [RANKS <count>...] [LIBS <library>...] [LABELS <label>...] [TIMEOUT <s>])
#
# One test of CTest from <name>.cpp in the current folder tests/<folder>, named <folder>/<name> and labelled with the
# first part of <folder>. The files of a folder make one program, <folder>_test (data_npz_test), linked with the
# library of <folder> (tpudist::data_npz, or LIBS of each file), GoogleTest and RapidCheck; each test is the program held
# to one file, `--file=tests/<folder>/<name>.cpp` (tests/support/test_file.hpp). Files with a PROGRAM are one of their
# own, <folder>_<suffix>_test, since something in them holds for a whole program. With ALL the test is that whole
# program, for a file that includes others.
#
# Without RANKS it is one test and runs directly. With RANKS it is one test for each count, run by
# mpirun, and for a count of 1 also one plain process without mpirun; the program is <folder>_mpi_test.
#
# The target tests_<label> builds all tests of that label: `ninja tests_train`.
#
# Tests of launch/ start the program tpudist (tests/support/paths.hpp) and are built after it.

# Tests take longer to compile than to run.
set(TPUDIST_TEST_OPTIONS $<$<CONFIG:Release>:-O1>)
set(TPUDIST_MPIRUN_FLAGS --bind-to none --oversubscribe)
set(TPUDIST_TEST_ENVIRONMENT OMP_NUM_THREADS=1)
set(TPUDIST_TEST_FIXTURE "")
set(TPUDIST_TEST_SLOWNESS 1)  # so many times their usual time limit may tests take
if(TPUDIST_SANITIZE)
  include(TpudistSanitizerReports)
endif()
set(TPUDIST_MPI_ENVIRONMENT
  OMPI_ALLOW_RUN_AS_ROOT=1
  OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
  OMPI_MCA_btl_vader_single_copy_mechanism=none)  # needs a right that containers do not give

function(tpudist_test name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "ALL" "PROGRAM;TIMEOUT" "RANKS;LIBS;LABELS")
  cmake_path(RELATIVE_PATH CMAKE_CURRENT_SOURCE_DIR BASE_DIRECTORY "${PROJECT_SOURCE_DIR}/tests"
             OUTPUT_VARIABLE folder)
  string(REPLACE "/" "_" library "${folder}")
  string(REGEX REPLACE "/.*" "" label "${folder}")
  if(NOT arg_LIBS)
    set(arg_LIBS tpudist::${library})
  endif()
  if(NOT arg_TIMEOUT)
    set(arg_TIMEOUT 120)
  endif()
  math(EXPR arg_TIMEOUT "${arg_TIMEOUT} * ${TPUDIST_TEST_SLOWNESS}")
  if(arg_RANKS)
    set(arg_PROGRAM mpi)
  endif()

  string(JOIN "_" target ${library} ${arg_PROGRAM} test)
  if(NOT TARGET ${target})
    tpudist_test_program(${target} ${label})
  endif()
  target_sources(${target} PRIVATE ${name}.cpp)
  target_link_libraries(${target} PRIVATE ${arg_LIBS})
  set(command ${target} --file=tests/${folder}/${name}.cpp)
  if(arg_ALL)
    set(command ${target})
  endif()

  function(add name processors)
    add_test(NAME ${name} COMMAND ${ARGN})
    set_tests_properties(${name} PROPERTIES
      LABELS "${label};${arg_LABELS}"
      TIMEOUT ${arg_TIMEOUT}
      PROCESSORS ${processors}
      FIXTURES_REQUIRED "${TPUDIST_TEST_FIXTURE}"
      ENVIRONMENT "${TPUDIST_TEST_ENVIRONMENT};${environment}")
  endfunction()

  if(NOT arg_RANKS)
    set(environment "")
    add(${folder}/${name} 1 ${command})
    return()
  endif()
  list(APPEND arg_LABELS mpi)
  set(environment "${TPUDIST_MPI_ENVIRONMENT}")
  if(1 IN_LIST arg_RANKS)
    add(${folder}/${name} 1 ${command})
  endif()
  list(TRANSFORM command REPLACE "^${target}$" "$<TARGET_FILE:${target}>")
  foreach(ranks IN LISTS arg_RANKS)
    add(${folder}/${name}.np${ranks} ${ranks}
        ${MPIEXEC_EXECUTABLE} ${TPUDIST_MPIRUN_FLAGS} -np ${ranks} ${command})
  endforeach()
endfunction()

# A program of tests without files yet.
function(tpudist_test_program target label)
  add_executable(${target})
  if(target MATCHES "_mpi_test$")
    target_link_libraries(${target} PRIVATE tpudist_test_mpi_main)
  else()
    target_link_libraries(${target} PRIVATE tpudist_test_main)
  endif()
  target_compile_options(${target} PRIVATE ${TPUDIST_TEST_OPTIONS})
  cmake_language(EVAL CODE "cmake_language(DEFER CALL tpudist_finish_test_program ${target})")
  if(NOT TARGET tests_${label})
    add_custom_target(tests_${label})
  endif()
  add_dependencies(tests_${label} ${target})
  if(TARGET tpudist AND label STREQUAL "launch")
    add_dependencies(${target} tpudist)
  endif()
endfunction()

# Run at the end of a program's folder: its precompiled header, by what it is linked with.
function(tpudist_finish_test_program target)
  get_target_property(libraries ${target} LINK_LIBRARIES)
  if(LibTorch::LibTorch IN_LIST libraries)
    tpudist_reuse_pch(${target} tpudist_test_torch)
  else()
    tpudist_reuse_pch(${target} tpudist_test_support)
  endif()
endfunction()
