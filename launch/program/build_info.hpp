#pragma once

#include <string>
#include <utility>
#include <vector>

namespace tpudist {

// The output of `tpudist --version`, one line each: version, commit of the sources, compiler,
// LibTorch, MPI, HDF5 and whether the GPU is used. MPI and HDF5 are the loaded libraries; the
// others are those of the build. No newline at the end.
std::string build_info();

// The commit of the sources; ends in "-modified" where files differed from it, "unknown" outside a
// repository.
std::string source_commit();

// The same as names and versions.
std::vector<std::pair<std::string, std::string>> build_versions();

}  // namespace tpudist
