#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace tpudist {

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

}  // namespace tpudist
