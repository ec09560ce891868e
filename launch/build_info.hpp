#pragma once

#include <string>
#include <utility>
#include <vector>

namespace tpudist {

// What `tpudist --version` prints, one line for each: version, commit of the sources, compiler,
// LibTorch, MPI, HDF5 and whether the GPU is used. MPI and HDF5 are the libraries that are loaded
// now, the others those that the program was built with. No newline at the end.
std::string build_info();

// The commit of the sources; "-modified" at its end where files differed from it, "unknown" where they
// were in no repository.
std::string source_commit();

// The same as names and versions.
std::vector<std::pair<std::string, std::string>> build_versions();

}  // namespace tpudist
