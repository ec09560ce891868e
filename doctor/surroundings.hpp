#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "doctor/job_facts.hpp"

namespace tpudist {

// What this process finds out by itself: host, process, cores, memory and its limit, GPUs,
// libraries, MPI's thread level, Slurm. MPI must be running. The caller sets the rest: rank, node,
// threads, device, kernels.
RankFacts find_surroundings();

// Tests the folder, or its nearest existing parent: writes, locks and removes a file there.
FolderFacts try_folder(const std::filesystem::path& folder);

// The smallest memory limit, in bytes, among a process's control groups and their parents; 0: none.
// `membership`: content of /proc/self/cgroup; `root`: /sys/fs/cgroup.
std::int64_t memory_limit(const std::filesystem::path& root, std::string_view membership);

// The mapped files whose names begin with `name`, each once; `maps`: content of /proc/self/maps.
std::vector<std::string> loaded_libraries(std::string_view maps, std::string_view name);

}  // namespace tpudist
