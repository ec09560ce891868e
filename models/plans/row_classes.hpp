#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace tpudist {

// Returns the class of each row [n]: rows with equal floats (-0.0 equals 0) and equal extra bytes
// get equal numbers; classes are numbered by first occurrence. `rows` is [n, width]; `extra` is
// [n], or empty if there is nothing more to compare. Rows are compared in full, not only by hash. A
// row with a NaN equals no row. Pure, thread-safe.
std::vector<std::int32_t> classes_of_rows(std::span<const float> rows, std::int64_t width,
                                          std::span<const std::uint8_t> extra = {});

}  // namespace tpudist
