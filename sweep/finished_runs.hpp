#pragma once

#include <filesystem>
#include <vector>

namespace tpudist {

// Whether a folder is that of a sweep.
bool holds_sweep(const std::filesystem::path& folder);

// The folders of the finished runs of a sweep's last stage that is known: of the fresh seeds of what was
// chosen, or of all runs where nothing is chosen. Logs which runs are missing. Throws ConfigError where
// none is finished, DataError where the sweep is damaged.
std::vector<std::filesystem::path> finished_runs(const std::filesystem::path& folder);

}  // namespace tpudist
