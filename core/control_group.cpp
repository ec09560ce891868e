#include "core/control_group.hpp"

#include <algorithm>
#include <fstream>
#include <iterator>
#include <thread>
#include <vector>

#include "core/text.hpp"

namespace tpudist {
namespace {

namespace fs = std::filesystem;

// The smallest of what `limit_of` finds in the folders of groups; `second`: of version 2.
double smallest(const fs::path& root, const std::string& membership, const std::string& controller,
                double limit_of(const fs::path& group, bool second)) {
  double least = 0;
  const auto take = [&](double limit) {
    if (limit > 0) least = least == 0 ? limit : std::min(least, limit);
  };
  for (const std::string& line : split(membership, '\n')) {
    // "0::/user.slice/a" of version 2, "7:cpu,cpuacct:/a" of version 1
    const std::vector<std::string> parts = split(line, ':');
    if (parts.size() < 3) continue;
    const bool second = parts[0] == "0" && parts[1].empty();
    if (!second && std::ranges::count(split(parts[1], ','), controller) == 0) continue;
    fs::path group = second ? root : root / controller;
    take(limit_of(group, second));
    for (const fs::path& name : fs::path(parts[2]).relative_path())
      take(limit_of(group /= name, second));
  }
  return least;
}

}  // namespace

std::string own_control_groups() {
  std::ifstream file("/proc/self/cgroup");
  return {std::istreambuf_iterator<char>(file), {}};
}

double memory_limit(const fs::path& root, const std::string& membership) {
  return smallest(root, membership, "memory", [](const fs::path& group, bool second) {
    double bytes = 0;  // also for "max"
    std::ifstream(group / (second ? "memory.max" : "memory.limit_in_bytes")) >> bytes;
    return bytes < 0x1p60 ? bytes : 0;  // version 1 has almost 2^63 for none
  });
}

double cpu_quota(const fs::path& root, const std::string& membership) {
  return smallest(root, membership, "cpu", [](const fs::path& group, bool second) {
    double time = 0, period = 0;
    std::ifstream file(group / (second ? "cpu.max" : "cpu.cfs_quota_us"));
    file >> time;
    if (!second) file = std::ifstream(group / "cpu.cfs_period_us");
    file >> period;
    return time > 0 && period > 0 ? time / period : 0;
  });
}

int usable_cores() {
  const double cores = std::thread::hardware_concurrency(), quota = cpu_quota();
  return std::max(1, static_cast<int>(quota > 0 ? std::min(cores, quota) : cores));
}

}  // namespace tpudist
