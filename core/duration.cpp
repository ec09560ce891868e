#include "core/duration.hpp"

#include <fmt/format.h>

#include <array>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <vector>

#include "core/text.hpp"

namespace tpudist {
namespace {

struct Unit {
  char letter;
  double seconds;
};
constexpr std::array<Unit, 4> kUnits{{{'d', 86400}, {'h', 3600}, {'m', 60}, {'s', 1}}};
constexpr double kLongest = 1e9;

// A number without sign at the beginning of `text`, which is cut off.
std::optional<double> take_number(std::string_view& text) {
  if (text.empty() || text[0] < '0' || text[0] > '9') return std::nullopt;
  double value = 0;
  const auto [end, error] =
      std::from_chars(text.data(), text.data() + text.size(), value, std::chars_format::fixed);
  if (error != std::errc{}) return std::nullopt;
  text.remove_prefix(static_cast<std::size_t>(end - text.data()));
  return value;
}

std::optional<double> parse_units(std::string_view text) {
  double seconds = 0;
  std::size_t next = 0;  // the first unit that may follow
  while (!text.empty()) {
    const std::optional<double> value = take_number(text);
    if (!value || text.empty()) return std::nullopt;
    std::size_t unit = next;
    while (unit < kUnits.size() && kUnits[unit].letter != text[0]) ++unit;
    if (unit == kUnits.size()) return std::nullopt;
    seconds += *value * kUnits[unit].seconds;
    next = unit + 1;
    text.remove_prefix(1);
  }
  return seconds;
}

// [days-]hours:minutes:seconds; minutes and seconds below 60.
std::optional<double> parse_clock(std::string_view text) {
  double days = 0;
  if (const std::size_t dash = text.find('-'); dash != std::string_view::npos) {
    const std::optional<double> value = take_number(text);
    if (!value || text.empty() || text[0] != '-') return std::nullopt;
    days = *value;
    text.remove_prefix(1);
  }
  const std::vector<std::string> parts = split(text, ':');
  if (parts.size() != 3) return std::nullopt;
  double seconds = 0;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    std::string_view part = parts[i];
    const std::optional<double> value = take_number(part);
    if (!value || !part.empty() || *value != std::floor(*value)) return std::nullopt;
    if (i > 0 && *value >= 60) return std::nullopt;
    seconds = 60 * seconds + *value;
  }
  return days * 86400 + seconds;
}

}  // namespace

std::optional<double> parse_duration(std::string_view text) {
  text = trim(text);
  if (text.empty()) return std::nullopt;
  std::optional<double> seconds;
  std::string_view rest = text;
  if (text.find(':') != std::string_view::npos) {
    seconds = parse_clock(text);
  } else if (const std::optional<double> plain = take_number(rest); plain && rest.empty()) {
    seconds = plain;
  } else {
    seconds = parse_units(text);
  }
  if (!seconds || *seconds > kLongest) return std::nullopt;
  return seconds;
}

std::string format_duration(double seconds) {
  auto rest = static_cast<std::int64_t>(std::llround(seconds * 1000));  // milliseconds
  std::string text;
  for (const Unit& unit : kUnits) {
    const auto length = static_cast<std::int64_t>(unit.seconds * 1000);
    if (unit.letter == 's') {
      if (rest > 0 || text.empty()) text += fmt::format("{:g}s", static_cast<double>(rest) / 1000);
      break;
    }
    if (rest >= length) text += fmt::format("{}{}", rest / length, unit.letter);
    rest %= length;
  }
  return text;
}

}  // namespace tpudist
