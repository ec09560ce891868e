#pragma once

#include <cstdint>

// For C++17, too: kernels include it.

namespace tpudist {

// Some consecutive rows of a matrix.
struct RowRun {
  std::int64_t begin = 0, count = 0;
  bool operator==(const RowRun& other) const {
    return begin == other.begin && count == other.count;
  }
};

}  // namespace tpudist
