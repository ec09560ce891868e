#include "models/plans/csr.hpp"

#include <algorithm>
#include <numeric>
#include <string>

#include "core/error.hpp"

namespace tpudist {

void refuse_index(std::int64_t value) {
  throw Error(ErrorKind::failed, "a plan needs " + std::to_string(value) +
                                     " rows, more than 32-bit indices reach: use fewer "
                                     "configurations in a slate or fewer slates in a unit");
}

Csr make_csr(std::int64_t rows, std::span<const CsrEntry> entries) {
  // Counting sort by row, then each row by source; both keep the order given.
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
    csr.begin.push_back(csr.entries());
  }
  return csr;
}

Csr transpose(const Csr& matrix, std::int64_t columns) {
  Csr result;
  result.begin.assign(columns + 1, 0);
  for (const std::int32_t source : matrix.source) ++result.begin[source + 1];
  std::partial_sum(result.begin.begin(), result.begin.end(), result.begin.begin());
  result.source.resize(matrix.source.size());
  result.weight.resize(matrix.weight.size());
  std::vector<std::int64_t> next(result.begin.begin(), result.begin.end() - 1);
  for (std::int64_t row = 0; row < matrix.rows(); ++row) {
    for (std::int64_t e = matrix.begin[row]; e < matrix.begin[row + 1]; ++e) {
      const std::int64_t place = next[matrix.source[e]]++;
      result.source[place] = static_cast<std::int32_t>(row);
      if (!matrix.weight.empty()) result.weight[place] = matrix.weight[e];
    }
  }
  return result;
}

Csr rows_of(std::span<const std::int32_t> index, std::int64_t groups) {
  Csr result;
  result.begin.assign(groups + 1, 0);
  for (const std::int32_t group : index) {
    if (group >= 0) ++result.begin[group + 1];
  }
  std::partial_sum(result.begin.begin(), result.begin.end(), result.begin.begin());
  result.source.resize(result.begin.back());
  std::vector<std::int64_t> next(result.begin.begin(), result.begin.end() - 1);
  for (std::size_t row = 0; row < index.size(); ++row) {
    if (index[row] >= 0) result.source[next[index[row]]++] = to_index32(row);
  }
  return result;
}

}  // namespace tpudist
