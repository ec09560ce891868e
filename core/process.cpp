#include "core/process.hpp"

#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <fstream>
#include <iterator>
#include <thread>
#include <vector>

#include "core/text.hpp"

namespace tpudist {
namespace {

// Bytes that are not valid text would break the JSON that contains the line.
std::string text_or_unknown(std::string text) {
  return text.empty() || !is_utf8(text) ? "unknown" : text;
}

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

// The smallest limit that `limit_of(group, second)` finds in the groups' folders; `second`: version
// 2.
template <typename LimitOf>
double least_limit(const std::filesystem::path& root, const std::string& membership,
                   const std::string& controller, const LimitOf& limit_of) {
  double least = 0;
  for (const std::string& line : split(membership, '\n')) {
    // "0::/user.slice/a" of version 2, "7:cpu,cpuacct:/a" of version 1
    const std::vector<std::string> parts = split(line, ':');
    if (parts.size() < 3) continue;
    const bool second = parts[0] == "0" && parts[1].empty();
    if (!second && std::ranges::count(split(parts[1], ','), controller) == 0) continue;
    std::filesystem::path group = second ? root : root / controller;
    for (const auto& name : std::filesystem::path("./" + parts[2])) {
      const double limit = limit_of(group /= name, second);
      if (limit > 0) least = least == 0 ? limit : std::min(least, limit);
    }
  }
  return least;
}

}  // namespace

double memory_limit(const std::filesystem::path& root, const std::string& membership) {
  return least_limit(root, membership, "memory", [](const auto& group, bool second) {
    double bytes = 0;  // also for "max"
    std::ifstream(group / (second ? "memory.max" : "memory.limit_in_bytes")) >> bytes;
    return bytes < 0x1p60 ? bytes : 0;  // version 1 writes almost 2^63 for none
  });
}

double cpu_quota(const std::filesystem::path& root, const std::string& membership) {
  return least_limit(root, membership, "cpu", [](const auto& group, bool second) {
    double time = 0, period = 0;
    std::ifstream file(group / (second ? "cpu.max" : "cpu.cfs_quota_us"));
    file >> time;
    if (!second) file = std::ifstream(group / "cpu.cfs_period_us");
    file >> period;
    return time > 0 && period > 0 ? time / period : 0;
  });
}

std::string own_groups() {
  std::ifstream file("/proc/self/cgroup");
  return {std::istreambuf_iterator<char>(file), {}};
}

int usable_cores() {
  const double cores = std::thread::hardware_concurrency(), quota = cpu_quota();
  return std::max(1, static_cast<int>(quota > 0 ? std::min(cores, quota) : cores));
}

std::string shell_word(const std::string& text) {
  constexpr std::string_view kPlain =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-+=./:,@%";
  const bool is_plain = !text.empty() && text.find_first_not_of(kPlain) == std::string::npos;
  return is_plain ? text : shell_quoted(text);
}

std::string shell_quoted(std::string_view text) {
  std::string word = "'";
  for (const char c : text) word += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return word + "'";
}

std::string command_line() {
  std::ifstream file("/proc/self/cmdline", std::ios::binary);
  std::string bytes{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  if (!bytes.empty() && bytes.back() == '\0') bytes.pop_back();
  if (bytes.empty()) return "unknown";
  std::vector<std::string> words = split(bytes, '\0');
  words.front() = words.front().substr(words.front().rfind('/') + 1);
  for (std::string& word : words) word = shell_word(word);
  return text_or_unknown(join(words, " "));
}

std::string processor_name() {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);) {
    if (!line.starts_with("model name")) continue;
    const std::size_t colon = line.find(':');
    if (colon != std::string::npos)
      return text_or_unknown(std::string(trim(line.substr(colon + 1))));
  }
  return "unknown";
}

std::string host_name() {
  std::array<char, 256> buffer{};
  return ::gethostname(buffer.data(), buffer.size() - 1) == 0 ? buffer.data() : "an unknown host";
}

std::uint64_t peak_resident_bytes() {
  // getrusage also has this number, but it survives exec: a small program started by a large one
  // would report the large one's peak.
  if (const std::uint64_t bytes = status_peak()) return bytes;
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<std::uint64_t>(usage.ru_maxrss) * 1024;
}

void give_way_to_others() {
  constexpr int kNice = 10;
  const auto thread = static_cast<id_t>(::gettid());
  errno = 0;
  const int now = ::getpriority(PRIO_PROCESS, thread);
  if (errno == 0) ::setpriority(PRIO_PROCESS, thread, std::max(now, kNice));
}

}  // namespace tpudist
