#pragma once

#include <filesystem>
#include <optional>
#include <vector>

#include "train/scoring/inference.hpp"

namespace tpudist {

// A member of a run and the file that its weights go to.
struct ExportedMember {
  int number = 0;  // EnsembleConfig::number_of
  std::filesystem::path path;
};

// The files for a run's members that did not fail: `file` itself for the member `number` or where
// the run has one member, else NAME-member-N.EXTENSION beside it, N the number of the member.
// Throws ConfigError when the run has no member `number`, or it failed.
std::vector<ExportedMember> exported_members(const TrainedRun& run,
                                             const std::filesystem::path& file,
                                             std::optional<int> number);

// Writes the weights of these members with write_weights; the metadata say where they come from.
// Throws IoError.
void export_weights(const TrainedRun& run, const std::vector<ExportedMember>& members);

}  // namespace tpudist
