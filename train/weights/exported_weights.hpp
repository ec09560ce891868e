#pragma once

#include <filesystem>
#include <optional>
#include <vector>

#include "train/scoring/trained_run.hpp"

namespace tpudist {

// A member of a run and the file for its weights.
struct ExportedMember {
  int number = 0;  // EnsembleConfig::number_of
  std::filesystem::path path;
};

// The files for a run's members that did not fail: `file` itself for the member `number` or if the
// run has one member, else NAME-member-N.EXTENSION beside it, with the member's number N. Throws
// ConfigError when the run has no member `number`, or it failed.
std::vector<ExportedMember> exported_members(const TrainedRun& run,
                                             const std::filesystem::path& file,
                                             std::optional<int> number);

// Writes the weights of these members with write_weights; the metadata record their origin. Throws
// IoError.
void export_weights(const TrainedRun& run, const std::vector<ExportedMember>& members);

}  // namespace tpudist
