#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "dist/rank_activity.hpp"

namespace tpudist {

// The folder in which the ranks of a run tell each other where they are: one small file for each, by
// its number, rewritten in place again and again. No lock and no fsync: who reads half of two texts
// looks again later, and what a crash leaves is of use to people only. Not thread-safe.
class RankFiles {
 public:
  // Makes the folder if need be, and this rank's file in it, of `rank` of `ranks`. Where that cannot
  // be done, or a file cannot be written later, one warning is logged, and others take this rank for
  // one of which nothing is known.
  RankFiles(std::filesystem::path folder, int rank, int ranks);
  ~RankFiles();
  RankFiles(const RankFiles&) = delete;
  RankFiles& operator=(const RankFiles&) = delete;

  void write(const RankStatus& place);
  // [ranks] those of the other ranks that could be read as a whole.
  std::vector<std::optional<RankStatus>> read_others() const;

 private:
  void warn(const char* what);
  std::filesystem::path path_of(int rank) const;

  const std::filesystem::path folder_;
  const int rank_, ranks_;
  int descriptor_ = -1;
  bool warned_ = false;
};

}  // namespace tpudist
