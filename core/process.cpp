#include "core/process.hpp"

#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <fstream>
#include <iterator>
#include <string>
#include <string_view>
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

}  // namespace

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
