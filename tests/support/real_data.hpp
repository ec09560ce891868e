#pragma once

#include <cstdlib>
#include <filesystem>
#include <optional>

#include "tests/support/paths.hpp"

namespace tpudist::test {

// The folder with files of the real TpuGraphs data set, if this machine has them:
// $TPUDIST_REAL_DATA, or ../shared/data/real beside the sources. Otherwise tests that need the
// files are skipped.
inline std::optional<std::filesystem::path> real_data_root() {
  const char* given = std::getenv("TPUDIST_REAL_DATA");
  const auto root = given ? std::filesystem::path(given) : source_folder() / "../shared/data/real";
  std::error_code error;
  if (!std::filesystem::is_directory(root, error)) return std::nullopt;
  return std::filesystem::weakly_canonical(root);
}

}  // namespace tpudist::test
