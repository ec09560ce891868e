#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "core/descriptor.hpp"
#include "dist/collectives/rank_activity.hpp"

namespace tpudist {

// The folder in which the ranks of a run tell each other their status. Each rank has one small
// file, named by its number and rewritten in place. There are no locks, and a sync only where other
// nodes need it (NFS): a reader that sees half of two texts tries again later, and files left by a
// crash are only for people. Not thread-safe.
class RankFiles {
 public:
  // Creates the folder if needed, and in it the file of rank `rank` of `ranks`. When this or a
  // later write fails, it logs one warning; the other ranks then know nothing of this rank.
  RankFiles(std::filesystem::path folder, int rank, int ranks);

  void write(const RankStatus& place);
  // [ranks] the statuses of the other ranks, where a complete one could be read.
  std::vector<std::optional<RankStatus>> read_others() const;

 private:
  void warn(const char* what);
  std::filesystem::path path_of(int rank) const;

  const std::filesystem::path folder_;
  const int rank_, ranks_;
  Descriptor file_;
  bool syncs_ = false, warned_ = false;
};

}  // namespace tpudist
