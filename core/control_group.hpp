#pragma once

#include <filesystem>
#include <string>

namespace tpudist {

std::string own_control_groups();  // content of /proc/self/cgroup

// The smallest limit that control groups, of version 1 or 2, set for a process: those of its
// `membership` and their parents; 0: none. In bytes, and in cores: 0.5 is half the time of one.
double memory_limit(const std::filesystem::path& root = "/sys/fs/cgroup",
                    const std::string& membership = own_control_groups());
double cpu_quota(const std::filesystem::path& root = "/sys/fs/cgroup",
                 const std::string& membership = own_control_groups());

// For how many threads this process has cores, by its CPU affinity and its quota; at least 1.
int usable_cores();

}  // namespace tpudist
