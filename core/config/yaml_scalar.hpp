#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace tpudist {

// What a configuration's plain scalars may look like, and how they are written. Independent of the
// locale.

enum class ScalarError { malformed, out_of_range };

template <typename T>
struct ParsedScalar {
  T value{};
  std::optional<ScalarError> error;
};

// Decimal, or a decimal fraction with or without exponent that is exactly integral: 400000, -1,
// 4e5, 2.50e1.
ParsedScalar<std::int64_t> parse_integer(std::string_view text);
// 1, 1e-3, .5, inf, -inf, .inf; no NaN, no hexadecimal. What over- or underflows is out of range.
ParsedScalar<double> parse_number(std::string_view text);

// The shortest text that parse_number reads as the same number; integral ones below 1e15 without
// exponent.
std::string format_number(double value);
// `text` in double quotes on one line, with the escapes of YAML.
std::string quote_text(std::string_view text);
// The same for messages: cut after about 80 bytes.
std::string quote_briefly(std::string_view text);
// `text` as a YAML scalar that stays the same text on one line in any place: plain where that is
// safe, in double quotes otherwise. `${env:` is escaped.
std::string format_yaml_text(std::string_view text);

}  // namespace tpudist
