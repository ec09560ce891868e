#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace tpudist {

// Returns the class of each row [n]: rows with equal floats (-0.0 counts as 0) and equal extra
// bytes get equal numbers, and classes are numbered by first occurrence. `rows` is [n, width],
// `extra` is [n], or empty where there is nothing more to compare. Rows are compared in full, not
// by their hash alone. A row with a NaN equals no row. Pure, thread-safe.
std::vector<std::int32_t> classes_of_rows(std::span<const float> rows, std::int64_t width,
                                          std::span<const std::uint8_t> extra = {});

}  // namespace tpudist
