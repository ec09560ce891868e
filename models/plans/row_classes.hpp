#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace tpudist {

// Numbers rows by content, in order of first occurrence: rows with equal floats (-0.0 counts as 0)
// and equal extra byte get equal numbers. `rows` is [n, width]; `extra` is [n] or empty. Compared
// in full, not by hash alone.
std::vector<std::int32_t> classes_of_rows(std::span<const float> rows, std::int64_t width,
                                          std::span<const std::uint8_t> extra = {});

}  // namespace tpudist
