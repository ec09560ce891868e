#include "core/numbers.hpp"

#include <fmt/format.h>

#include <array>
#include <bit>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <vector>

#include "core/text.hpp"

namespace tpudist {

std::optional<std::uint64_t> checked_mul(std::uint64_t a, std::uint64_t b) {
  std::uint64_t product = 0;
  if (__builtin_mul_overflow(a, b, &product)) return std::nullopt;
  return product;
}

std::string format_bytes(std::uint64_t bytes) {
  static constexpr const char* kUnits[] = {"KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
  if (bytes < 1024) return fmt::format("{} B", bytes);
  double value = static_cast<double>(bytes) / 1024;
  int unit = 0;
  // 1023.95 would be printed as 1024.0.
  while (value >= 1023.95 && unit < 5) {
    value /= 1024;
    ++unit;
  }
  return fmt::format("{:.1f} {}", value, kUnits[unit]);
}

std::string format_count(std::int64_t count) {
  const std::string digits = fmt::format("{}", count);
  const std::size_t sign = count < 0 ? 1 : 0;
  std::string text;
  for (std::size_t i = 0; i < digits.size(); ++i) {
    if (i > sign && (digits.size() - i) % 3 == 0) text += ',';
    text += digits[i];
  }
  return text;
}

std::string counted(std::int64_t count, std::string_view what) {
  if (count == 1) return fmt::format("1 {}", what);
  const bool family = what.ends_with("ly");
  return fmt::format("{} {}{}", format_count(count),
                     family ? what.substr(0, what.size() - 1) : what, family ? "ies" : "s");
}

std::string format_seconds(double seconds) {
  if (!(seconds >= 0) || seconds > 1e12) return "?";
  if (seconds < 0.9995) return fmt::format("{:.0f} ms", seconds * 1e3);
  if (seconds < 9.95) return fmt::format("{:.1f} s", seconds);
  const auto whole = static_cast<std::int64_t>(std::llround(seconds));
  const std::int64_t days = whole / 86400, hours = whole / 3600 % 24, minutes = whole / 60 % 60;
  if (whole < 60) return fmt::format("{} s", whole);
  if (days > 0) return fmt::format("{}d {:02}:{:02}:{:02}", days, hours, minutes, whole % 60);
  if (hours > 0) return fmt::format("{}:{:02}:{:02}", hours, minutes, whole % 60);
  return fmt::format("{}:{:02}", minutes, whole % 60);
}

float half_to_float(std::uint16_t bits) {
  const std::uint32_t sign = static_cast<std::uint32_t>(bits & 0x8000u) << 16;
  const std::uint32_t exponent = (bits >> 10) & 0x1fu, fraction = bits & 0x3ffu;
  if (exponent == 0) {  // zero, or a fraction of 2^-24 without a leading 1
    const float value = std::ldexp(static_cast<float>(fraction), -24);
    return sign ? -value : value;
  }
  const std::uint32_t wide = exponent == 0x1fu ? 0xffu : exponent + (127 - 15);
  return std::bit_cast<float>(sign | wide << 23 | fraction << 13);
}

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
