#pragma once

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <span>
#include <vector>

#include "models/plans/csr.hpp"

namespace tpudist::test {

// One weighted entry of a sparse matrix.
struct CsrEntry {
  std::int32_t row = 0;
  std::int32_t source = 0;
  float weight = 1;
};

// Builds a matrix of `rows` rows. Sorts the entries of a row by source, and adds the weights of
// equal entries in double, in the given order. Every row index must be below `rows`.
inline Csr make_csr(std::int64_t rows, std::span<const CsrEntry> entries) {
  // Counting sort by row, then each row by source; both are stable.
  std::vector<std::int64_t> end(rows + 1, 0);
  for (const CsrEntry& entry : entries) ++end[entry.row + 1];
  std::partial_sum(end.begin(), end.end(), end.begin());
  std::vector<CsrEntry> sorted(entries.size());
  std::vector<std::int64_t> next(end.begin(), end.end() - 1);
  for (const CsrEntry& entry : entries) sorted[next[entry.row]++] = entry;

  Csr csr;
  csr.begin.reserve(rows + 1);
  csr.source.reserve(entries.size());
  csr.weight.reserve(entries.size());
  csr.begin.push_back(0);
  const auto by_source = [](const CsrEntry& a, const CsrEntry& b) { return a.source < b.source; };
  for (std::int64_t row = 0; row < rows; ++row) {
    const auto first = sorted.begin() + end[row], last = sorted.begin() + end[row + 1];
    std::stable_sort(first, last, by_source);
    for (auto entry = first; entry != last;) {
      const std::int32_t source = entry->source;
      double weight = 0;
      for (; entry != last && entry->source == source; ++entry) weight += entry->weight;
      csr.source.push_back(source);
      csr.weight.push_back(static_cast<float>(weight));
    }
    csr.begin.push_back(to_index32(csr.entries()));
  }
  return csr;
}

}  // namespace tpudist::test
