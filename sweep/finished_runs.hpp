#pragma once

#include <filesystem>
#include <vector>

namespace tpudist {

// The folders of the finished runs of a sweep's newest known stage: those with fresh seeds of the
// chosen variants, or all runs where nothing is chosen. Logs which runs are missing. Throws
// ConfigError where none is finished, DataError where the sweep is damaged.
std::vector<std::filesystem::path> finished_runs(const std::filesystem::path& folder);

// Replaces each sweep folder in `paths` by the folders of its finished runs.
std::vector<std::filesystem::path> run_folders(const std::vector<std::filesystem::path>& paths);

}  // namespace tpudist
