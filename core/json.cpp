#include "core/json.hpp"

#include <algorithm>

#include "core/error.hpp"
#include "core/file_system.hpp"

namespace tpudist {

std::string json_fault(std::string_view what) {
  constexpr std::size_t kLongest = 120;
  constexpr std::string_view kNumber = "[json.exception.";
  std::string_view text = what;
  if (text.starts_with(kNumber)) {
    const std::size_t end = text.find("] ");
    if (end != std::string_view::npos) text.remove_prefix(end + 2);
  }
  if (text.starts_with("parse error")) text = text.substr(0, text.find(": "));
  std::string line(text.substr(0, kLongest));
  if (text.size() > kLongest) line += " ...";
  for (char& c : line) {
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) c = ' ';
  }
  return line;
}

std::size_t json_depth(std::string_view text) {
  std::size_t depth = 0, deepest = 0;
  bool in_string = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (in_string && c == '\\') {
      ++i;
    } else if (c == '"') {
      in_string = !in_string;
    } else if (!in_string && (c == '[' || c == '{')) {
      deepest = std::max(deepest, ++depth);
    } else if (!in_string && (c == ']' || c == '}') && depth > 0) {
      --depth;
    }
  }
  return deepest;
}

void read_json_file(const std::filesystem::path& path, std::string_view format,
                    std::string_view advice,
                    const std::function<void(const nlohmann::json&)>& from) {
  const std::string text = read_text_file(path);
  try {
    const auto json = nlohmann::json::parse(text);
    std::string found;
    read_field(json, "format", found);
    if (found != format) {
      throw std::invalid_argument(
          fmt::format("its format is \"{}\", and this program reads \"{}\"", found, format));
    }
    from(json);
  } catch (const std::exception& error) {
    throw DataError(
        fmt::format("{}: damaged: {}; {}", path.string(), json_fault(error.what()), advice));
  }
}

}  // namespace tpudist
