#include "results/report/charts/markup.hpp"

#include <fmt/format.h>

#include <cmath>

#include "core/text.hpp"

namespace tpudist {

std::string escaped(std::string_view text) {
  std::string result;
  for (const char c : printable(text, "\t\n", "\xef\xbf\xbd")) {
    if (c == '&') {
      result += "&amp;";
    } else if (c == '<') {
      result += "&lt;";
    } else if (c == '>') {
      result += "&gt;";
    } else if (c == '"') {
      result += "&quot;";
    } else if (c == '\'') {
      result += "&#39;";
    } else {
      result += c;
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
  std::size_t characters = 0, cut = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if ((text[i] & 0xC0) != 0x80 && ++characters == most) cut = i;
  }
  if (characters <= most) return std::string(text);
  return std::string(text.substr(0, cut)) + "\xe2\x80\xa6";
}

}  // namespace tpudist
