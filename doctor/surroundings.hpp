#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "doctor/job_facts.hpp"

namespace tpudist {

// What this process finds by itself: host, process, cores, memory and its limit, GPUs, libraries,
// MPI's thread level, Slurm. MPI must be running. The rest is for the caller: rank, node, threads,
// device, kernels.
RankFacts find_surroundings();

// Tries the folder, or the next one above it that exists: writes and locks a file there, and removes
// it again.
FolderFacts try_folder(const std::filesystem::path& folder);

// The smallest limit of memory, in bytes, of the control groups that `membership`
// (/proc/self/cgroup) names below `root` (/sys/fs/cgroup), and those above them; 0: none.
std::int64_t memory_limit(const std::filesystem::path& root, std::string_view membership);

// The files whose names begin with `name` among those that a process has mapped, each once; `maps`
// is its /proc/self/maps.
std::vector<std::string> loaded_libraries(std::string_view maps, std::string_view name);

}  // namespace tpudist
