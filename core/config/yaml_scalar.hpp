#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>

namespace tpudist {

// The syntax of a configuration's plain scalars, for reading and writing. Independent of the
// locale.

template <typename T>
struct ParsedScalar {
  T value{};
  std::optional<std::errc> error;  // invalid_argument or result_out_of_range
};

// A decimal integer, or a decimal fraction with or without exponent whose value is exactly an
// integer: 400000, -1, 4e5, 2.50e1.
ParsedScalar<std::int64_t> parse_integer(std::string_view text);
// 1, 1e-3, .5, inf, -inf, .inf; no NaN, no hexadecimal. Overflow and underflow are errors.
ParsedScalar<double> parse_number(std::string_view text);
// A number of bytes: 4096, 1.5GB (10^9 bytes each), 512 MiB (2^20); up to TB and TiB.
ParsedScalar<std::int64_t> parse_bytes(std::string_view text);

// The shortest text that parse_number reads as the same number; integers below 1e15 without
// exponent.
std::string format_number(double value);
// Rewrites a number of format_number, or a bracketed list of such numbers, so that YAML 1.1 readers
// see numbers too: 1.0e-08, .inf.
std::string portable_numbers(std::string_view yaml);
// Quotes a text of format_yaml_text that those readers would take for a number or a date: 1_000,
// 0x1F, 2024-01-01, 1:30:00.
std::string portable_text(std::string_view yaml);
// `text` in double quotes on one line, with the escapes of YAML.
std::string quote_text(std::string_view text);
// The same for messages: cut after about 80 bytes.
std::string quote_briefly(std::string_view text);
// `text` as a one-line YAML scalar that reads back as the same text anywhere in a document: plain
// if that is safe, else in double quotes. `${env:` is escaped.
std::string format_yaml_text(std::string_view text);

}  // namespace tpudist
