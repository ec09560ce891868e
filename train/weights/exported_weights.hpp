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

// The files for a run's members that did not fail: `file` itself for the member `number` or for the
// only member, else NAME-member-N.EXTENSION beside `file`, with the member's number N. Throws
// ConfigError when the run has no member `number`, or when that member failed.
std::vector<ExportedMember> exported_members(const TrainedRun& run,
                                             const std::filesystem::path& file,
                                             std::optional<int> number);

// Writes these members' weights with write_weights and metadata on their origin. Throws IoError.
void export_weights(const TrainedRun& run, const std::vector<ExportedMember>& members);

}  // namespace tpudist
