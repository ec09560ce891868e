#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <string_view>

namespace tpudist {

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
