#pragma once

#include <cstdint>
#include <filesystem>
#include <vector>

#include "core/file_system.hpp"

namespace tpudist {

// The file of a step in a run's folder, "step-000000123.h5".
std::filesystem::path checkpoint_path(const std::filesystem::path& folder, std::int64_t step);
// All of them, newest first; none when there is no folder. The newest may turn out to be damaged:
// the others are what to fall back to.
std::vector<std::filesystem::path> list_checkpoints(const std::filesystem::path& folder);
// Removes all but the `keep` newest, and what interrupted writers left behind. Throws IoError.
void prune_checkpoints(const std::filesystem::path& folder, int keep,
                       FileSystem& files = posix_file_system());

}  // namespace tpudist
