#include "core/config/yaml_scalar.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <limits>
#include <utility>
#include <vector>

#include "core/numbers.hpp"
#include "core/text.hpp"

namespace tpudist {
namespace {

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

// A decimal number as sign, digits and the power of ten of the last digit.
struct Decimal {
  bool negative = false;
  std::string digits;  // without zeros at both ends; empty for 0
  std::int64_t exponent = 0;
};

std::optional<Decimal> parse_decimal(std::string_view text) {
  Decimal decimal;
  if (!text.empty() && (text[0] == '-' || text[0] == '+')) {
    decimal.negative = text[0] == '-';
    text.remove_prefix(1);
  }
  std::size_t i = 0;
  bool any = false, point = false;
  for (; i < text.size() && (is_digit(text[i]) || (text[i] == '.' && !point)); ++i) {
    if (text[i] == '.') {
      point = true;
      continue;
    }
    any = true;
    decimal.digits += text[i];
    decimal.exponent -= point;
  }
  if (!any) return std::nullopt;
  if (i < text.size()) {
    if (text[i] != 'e' && text[i] != 'E') return std::nullopt;
    text.remove_prefix(i + 1);
    if (text.size() > 1 && text[0] == '+' && is_digit(text[1])) text.remove_prefix(1);
    std::int32_t power = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), power);
    if (end != text.data() + text.size() || error == std::errc::invalid_argument)
      return std::nullopt;
    if (error == std::errc::result_out_of_range) {
      power = text[0] == '-' ? std::numeric_limits<std::int32_t>::min()
                             : std::numeric_limits<std::int32_t>::max();
    }
    decimal.exponent += power;
  }
  decimal.digits.erase(0, std::min(decimal.digits.find_first_not_of('0'), decimal.digits.size()));
  while (!decimal.digits.empty() && decimal.digits.back() == '0') {
    decimal.digits.pop_back();
    ++decimal.exponent;
  }
  return decimal;
}

// Whether YAML readers take a word for something other than text.
bool has_a_meaning(std::string_view text) {
  constexpr auto kWords = std::to_array<std::string_view>(
      {"null", "Null", "NULL", "true", "True", "TRUE", "false", "False", "FALSE", "yes", "no", "on",
       "off", "y", "n", "nan", ".nan"});
  return std::ranges::find(kWords, text) != kWords.end() ||
         parse_number(text).error != std::errc::invalid_argument;
}

bool is_safe_as_plain(std::string_view text) {
  if (text.empty() || text.size() > 200 || text.back() == ':' || has_a_meaning(text)) return false;
  constexpr std::string_view kPlain =
      ".:+-=@_/0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";
  return kPlain.substr(0, 6).find(text[0]) == text.npos &&
         text.find_first_not_of(kPlain) == text.npos;
}

}  // namespace

ParsedScalar<std::int64_t> parse_integer(std::string_view text) {
  const auto decimal = parse_decimal(text);
  if (!decimal) return {0, std::errc::invalid_argument};
  if (decimal->digits.empty()) return {0, {}};
  if (decimal->exponent < 0) return {0, std::errc::invalid_argument};
  if (decimal->exponent > 20 || decimal->digits.size() > 20)
    return {0, std::errc::result_out_of_range};
  const std::string whole = (decimal->negative ? "-" : "") + decimal->digits +
                            std::string(static_cast<std::size_t>(decimal->exponent), '0');
  const auto value = number_of<std::int64_t>(whole);
  if (!value) return {0, std::errc::result_out_of_range};
  return {*value, {}};
}

ParsedScalar<double> parse_number(std::string_view text) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  const std::string_view digits = !text.empty() && text[0] == '+' ? text.substr(1) : text;
  if (digits == "inf" || digits == ".inf") return {kInfinity, {}};
  if (text == "-inf" || text == "-.inf") return {-kInfinity, {}};
  if (!parse_decimal(text)) return {0, std::errc::invalid_argument};
  double value = 0;
  const auto error = std::from_chars(digits.data(), digits.data() + digits.size(), value).ec;
  if (error == std::errc::result_out_of_range) return {0, std::errc::result_out_of_range};
  if (error != std::errc()) return {0, std::errc::invalid_argument};
  return {value, {}};
}

ParsedScalar<std::int64_t> parse_bytes(std::string_view text) {
  static constexpr std::pair<std::string_view, double> kUnits[] = {
      {"kB", 1e3},     {"MB", 1e6},     {"GB", 1e9},     {"TB", 1e12},
      {"KiB", 0x1p10}, {"MiB", 0x1p20}, {"GiB", 0x1p30}, {"TiB", 0x1p40}};
  for (const auto& [unit, size] : kUnits) {
    if (!text.ends_with(unit)) continue;
    text.remove_suffix(unit.size());
    if (text.ends_with(' ')) text.remove_suffix(1);
    const auto number = parse_number(text);
    if (number.error) return {0, number.error};
    const double bytes = number.value * size;
    if (!(std::abs(bytes) < 0x1p63)) return {0, std::errc::result_out_of_range};
    return {static_cast<std::int64_t>(bytes), {}};
  }
  return parse_integer(text);
}

std::string format_number(double value) {
  if (std::isinf(value)) return value > 0 ? "inf" : "-inf";
  char buffer[64];
  const bool whole = std::abs(value) < 1e15 && value == std::trunc(value);
  const auto end =
      whole ? std::to_chars(buffer, buffer + sizeof buffer, value, std::chars_format::fixed)
            : std::to_chars(buffer, buffer + sizeof buffer, value);
  return std::string(buffer, end.ptr);
}

std::string portable_numbers(std::string_view yaml) {
  std::vector<std::string> pieces = split(yaml, ' ');  // each has one number
  for (std::string& piece : pieces) {
    const std::size_t e = piece.find('e'), inf = piece.find("inf");
    if (inf != std::string::npos) piece.insert(inf, ".");
    if (e != std::string::npos && piece.find('.') == std::string::npos) piece.insert(e, ".0");
  }
  return join(pieces, " ");
}

std::string portable_text(std::string_view yaml) {
  const bool number = !yaml.empty() && is_digit(yaml[0]) &&
                      yaml.find_first_not_of("0123456789abcdefABCDEFoxTtZ_.:+-") == yaml.npos;
  return number ? quote_text(yaml) : std::string(yaml);
}

std::string quote_text(std::string_view text) {
  std::string quoted = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') {
      quoted += '\\';
      quoted += c;
    } else if (c == '\n') {
      quoted += "\\n";
    } else if (c == '\t') {
      quoted += "\\t";
    } else if (static_cast<unsigned char>(c) < 0x20 || c == 0x7F) {
      quoted += fmt::format("\\x{:02X}", static_cast<unsigned char>(c));
    } else {
      quoted += c;
    }
  }
  return quoted + '"';
}

std::string quote_briefly(std::string_view text) {
  std::size_t end = std::min<std::size_t>(text.size(), 80);
  while (end < text.size() && (text[end] & 0xC0) == 0x80) ++end;  // no half characters
  return quote_text(text.substr(0, end)) + (end < text.size() ? "..." : "");
}

std::string format_yaml_text(std::string_view text) {
  if (is_safe_as_plain(text)) return std::string(text);
  std::string escaped(text);
  for (std::size_t at = 0; (at = escaped.find("${env:", at)) != std::string::npos; at += 2) {
    escaped.insert(at, 1, '$');
  }
  return quote_text(escaped);
}

}  // namespace tpudist
