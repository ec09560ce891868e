#include "core/process.hpp"

#include <fstream>
#include <iterator>
#include <string_view>
#include <vector>

#include "core/text.hpp"

namespace tpudist {
namespace {

// Bytes that are not valid text would break the JSON that contains the line.
std::string text_or_unknown(std::string text) {
  return text.empty() || !is_utf8(text) ? "unknown" : text;
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

}  // namespace tpudist
