#include "core/process.hpp"

#include <fstream>
#include <iterator>
#include <string_view>
#include <vector>

#include "core/text.hpp"

namespace tpudist {
namespace {

// An argument as a word of a POSIX shell.
std::string quoted(const std::string& argument) {
  constexpr std::string_view kPlain =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-+=./:,@%";
  if (!argument.empty() && argument.find_first_not_of(kPlain) == std::string::npos) return argument;
  std::string text = "'";
  for (const char c : argument) text += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return text + "'";
}

// Bytes that are no text would break the JSON that the line goes into.
std::string text_or_unknown(std::string text) {
  return text.empty() || !is_utf8(text) ? "unknown" : text;
}

}  // namespace

std::string command_line() {
  std::ifstream file("/proc/self/cmdline", std::ios::binary);
  std::string bytes{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  if (!bytes.empty() && bytes.back() == '\0') bytes.pop_back();
  if (bytes.empty()) return "unknown";
  std::vector<std::string> words = split(bytes, '\0');
  words.front() = words.front().substr(words.front().rfind('/') + 1);
  for (std::string& word : words) word = quoted(word);
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

}  // namespace tpudist
