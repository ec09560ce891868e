#pragma once

#include <charconv>
#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace tpudist {

// The number that the whole text is, as std::from_chars reads it (`base`: of integers, as there);
// nothing for any other text.
template <typename T>
std::optional<T> number_of(std::string_view text, auto... base) {
  T value{};
  const char* const end = text.data() + text.size();
  const auto [at, error] = std::from_chars(text.data(), end, value, base...);
  return error == std::errc{} && at == end ? std::optional(value) : std::nullopt;
}

// The product of two sizes read from files; nothing on overflow.
std::optional<std::uint64_t> checked_mul(std::uint64_t a, std::uint64_t b);

// The value of an IEEE 754 binary16 number, given its bits. Exact; NaN stays NaN.
float half_to_float(std::uint16_t bits);

// "512 B", "1.2 GiB".
std::string format_bytes(std::uint64_t bytes);
// "31,091,253".
std::string format_count(std::int64_t count);
// "1 step", "1,000 steps", "2 families".
std::string counted(std::int64_t count, std::string_view what);
// "12 ms", "3.4 s", "5:07", "2:05:07", "3d 02:05:07". "?" for a negative value or NaN.
std::string format_seconds(double seconds);

// Parses a duration into seconds: "90" (seconds), "1.5h", "7h30m", "2d", "45s", or in Slurm's
// notation "1:30:00" and "2-12:00:00" (days-hours:minutes:seconds). Units go from larger to
// smaller, each at most once. Returns nothing for any other text, for negative values and above 1e9
// s.
std::optional<double> parse_duration(std::string_view text);

// "7h30m", "45s", "2d", "1.5s". parse_duration reads it back, to a millisecond.
std::string format_duration(double seconds);

inline double seconds_between(std::chrono::steady_clock::time_point begin,
                              std::chrono::steady_clock::time_point end) {
  return std::chrono::duration<double>(end - begin).count();
}
inline double seconds_since(std::chrono::steady_clock::time_point begin) {
  return seconds_between(begin, std::chrono::steady_clock::now());
}

}  // namespace tpudist
