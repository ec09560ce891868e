#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace tpudist {

// Seconds of a length of time as people write it: "90" (seconds), "1.5h", "7h30m", "2d", "45s", and as
// Slurm has it "1:30:00" and "2-12:00:00" (days-hours:minutes:seconds). Units go from larger to smaller, each at
// most once. Nothing for anything else, and for what is negative or beyond 1e9.
std::optional<double> parse_duration(std::string_view text);

// "7h30m", "45s", "2d", "1.5s": what parse_duration reads back, to a millisecond.
std::string format_duration(double seconds);

}  // namespace tpudist
