#include "report/charts/markup.hpp"

#include <fmt/format.h>

#include <cmath>

#include "core/escape.hpp"

namespace tpudist {
namespace {

constexpr std::string_view kReplacement = "\xef\xbf\xbd";

// XML forbids U+FFFE and U+FFFF, too.
bool is_allowed(std::string_view character) {
  if (character == "\xef\xbf\xbe" || character == "\xef\xbf\xbf") return false;
  return !is_control(character) || character == "\t" || character == "\n";
}

}  // namespace

std::string escaped(std::string_view text) {
  std::string result;
  while (!text.empty()) {
    const std::size_t length = character_length(text);
    const std::string_view character = text.substr(0, length == 0 ? 1 : length);
    text.remove_prefix(character.size());
    if (length == 0 || !is_allowed(character)) {
      result += kReplacement;
    } else if (character == "&") {
      result += "&amp;";
    } else if (character == "<") {
      result += "&lt;";
    } else if (character == ">") {
      result += "&gt;";
    } else if (character == "\"") {
      result += "&quot;";
    } else if (character == "'") {
      result += "&#39;";
    } else {
      result += character;
    }
  }
  return result;
}

std::string pixels(double value) {
  if (!std::isfinite(value)) return "0";
  const double rounded = std::round(value * 10) / 10;
  return fmt::format("{}", rounded == 0 ? 0.0 : rounded);
}

std::string shortened(std::string_view text, std::size_t most) {
  std::size_t bytes = 0, characters = 0, cut = 0;
  while (bytes < text.size()) {
    if (characters + 1 == most) cut = bytes;
    const std::size_t length = character_length(text.substr(bytes));
    bytes += length == 0 ? 1 : length;
    ++characters;
  }
  if (characters <= most) return std::string(text);
  return std::string(text.substr(0, cut)) + "\xe2\x80\xa6";
}

}  // namespace tpudist
