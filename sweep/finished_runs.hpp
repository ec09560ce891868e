#pragma once

#include <filesystem>
#include <vector>

namespace tpudist {

// The folders of the finished runs of a sweep's last stage that is known: of the fresh seeds of what was
// chosen, or of all runs where nothing is chosen. Logs which runs are missing. Throws ConfigError where
// none is finished, DataError where the sweep is damaged.
std::vector<std::filesystem::path> finished_runs(const std::filesystem::path& folder);

// Folders of runs, with the finished runs of a sweep in the place of its folder.
std::vector<std::filesystem::path> run_folders(const std::vector<std::filesystem::path>& paths);

}  // namespace tpudist
