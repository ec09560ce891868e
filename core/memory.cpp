#include "core/memory.hpp"

#include <sys/resource.h>

#include <fstream>
#include <string>

namespace tpudist {
namespace {

// The line "VmHWM:  1234 kB" of /proc/self/status in bytes; 0 when there is none.
std::uint64_t status_peak() {
  std::ifstream status("/proc/self/status");
  std::string word;
  std::uint64_t kibibytes = 0;
  while (status >> word) {
    if (word == "VmHWM:") return status >> kibibytes ? kibibytes * 1024 : 0;
    status.ignore(1 << 16, '\n');
  }
  return 0;
}

}  // namespace

std::uint64_t peak_resident_bytes() {
  // getrusage also has this number, but it survives exec: a small program started by a large one
  // would report the large one's peak.
  if (const std::uint64_t bytes = status_peak()) return bytes;
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<std::uint64_t>(usage.ru_maxrss) * 1024;
}

}  // namespace tpudist
