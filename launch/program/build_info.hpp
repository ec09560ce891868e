#pragma once

#include <string>
#include <utility>
#include <vector>

namespace tpudist {

// The output of `tpudist --version`, one line each: version, commit of the sources, compiler,
// LibTorch, MPI, HDF5 and whether the GPU is used. The versions of MPI and HDF5 are those of the
// loaded libraries, all others those of the build. No newline at the end.
std::string build_info();

// The commit of the sources; ends in "-modified" if files differed from the commit. "unknown"
// outside of a repository.
std::string source_commit();

// The lines of build_info() as names and versions.
std::vector<std::pair<std::string, std::string>> build_versions();

}  // namespace tpudist
