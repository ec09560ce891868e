#include "models/plans/csr.hpp"

#include <numeric>
#include <string>

#include "core/error.hpp"

namespace tpudist {

void refuse_index(std::int64_t value) {
  throw Error(ErrorKind::failed, "a plan needs " + std::to_string(value) +
                                     " rows, more than 32-bit indices reach: use fewer "
                                     "configurations in a slate or fewer slates in a unit");
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

Csr transpose_index(std::span<const std::int32_t> index, std::int64_t size) {
  Csr result;
  result.begin.assign(size + 1, 0);
  for (const std::int32_t value : index) {
    if (value >= 0) ++result.begin[value + 1];
  }
  std::partial_sum(result.begin.begin(), result.begin.end(), result.begin.begin());
  result.source.resize(result.begin.back());
  std::vector<std::int64_t> next(result.begin.begin(), result.begin.end() - 1);
  for (std::size_t row = 0; row < index.size(); ++row) {
    if (index[row] >= 0) result.source[next[index[row]]++] = to_index32(row);
  }
  return result;
}

LongRows split_long_rows(const Csr& matrix, std::int64_t length) {
  LongRows split{length, {}, {}, {}, {0}};
  for (std::int64_t row = 0; row < matrix.rows(); ++row) {
    const std::int64_t first = matrix.begin[row], last = matrix.begin[row + 1];
    if (last - first <= length) continue;
    for (std::int64_t entry = first; entry < last; entry += length) {
      split.chunk_begin.push_back(entry);
      split.chunk_row.push_back(to_index32(row));
    }
    split.row.push_back(to_index32(row));
    split.begin.push_back(static_cast<std::int64_t>(split.chunk_begin.size()));
  }
  return split;
}

}  // namespace tpudist
