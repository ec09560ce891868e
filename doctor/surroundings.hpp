#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "doctor/job_facts.hpp"

namespace tpudist {

// What this process finds out by itself: host, process, cores and memory with their limits, GPUs,
// libraries, MPI's thread level, Slurm. MPI must be running. The caller sets the rest: rank, node,
// threads, device, kernels.
RankFacts find_surroundings();

// Tests the folder, or its nearest existing parent: writes, locks and removes a file there.
FolderFacts try_folder(const std::filesystem::path& folder);

// The mapped files whose names begin with `name`, each once; `maps`: content of /proc/self/maps.
std::vector<std::string> loaded_libraries(std::string_view maps, std::string_view name);

}  // namespace tpudist
