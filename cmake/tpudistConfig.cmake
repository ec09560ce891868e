# find_package(tpudist): tpudist::data_loading and the libraries below it (docs/installing.md). Needs C and C++ enabled.
include("${CMAKE_CURRENT_LIST_DIR}/TpudistDataDependencies.cmake")
include("${CMAKE_CURRENT_LIST_DIR}/tpudistTargets.cmake")
