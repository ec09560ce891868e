#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include "data/npz/npz_reader.hpp"

namespace tpudist::test {

// Returns all integers of an array, of any width. Throws as NpzArray::read.
inline std::vector<std::int64_t> read_integers(NpzArray array) {
  constexpr std::uint64_t kPiece = 4096;  // so that a wrong header fails before its memory is taken
  std::vector<std::int64_t> values;
  while (array.remaining() > 0) {
    const std::size_t count = std::min(array.remaining(), kPiece);
    values.resize(values.size() + count);
    array.read(std::span(values).last(count));
  }
  return values;
}

}  // namespace tpudist::test
