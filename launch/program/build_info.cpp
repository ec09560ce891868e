#include "launch/program/build_info.hpp"

#include <H5public.h>
#include <fmt/format.h>

#include "core/version.hpp"
#include "dist/collectives/mpi_session.hpp"
#include "git_commit.hpp"  // written by the build: TPUDIST_GIT_COMMIT
#include "models/kernels/cpu_process.hpp"

namespace tpudist {

namespace {

std::string hdf5_library() {
  unsigned major = 0, minor = 0, release = 0;
  if (H5get_libversion(&major, &minor, &release) < 0) return "unknown";
  return fmt::format("{}.{}.{}", major, minor, release);
}

}  // namespace

std::string source_commit() {
  const std::string commit = TPUDIST_GIT_COMMIT;
  return commit.empty() ? "unknown" : commit;
}

std::vector<std::pair<std::string, std::string>> build_versions() {
  return {{"tpudist", std::string(version())},
          {"commit", source_commit()},
          {"compiler", TPUDIST_COMPILER},
          {"LibTorch", libtorch_version()},
          {"MPI", mpi_library()},
          {"HDF5", hdf5_library()},
          {"CUDA", TPUDIST_CUDA}};
}

std::string build_info() {
  std::string text = fmt::format("tpudist {}", version());
  for (const auto& [name, version] : build_versions())
    if (name != "tpudist") text += fmt::format("\n{:<9} {}", name, version);
  return text;
}

}  // namespace tpudist
