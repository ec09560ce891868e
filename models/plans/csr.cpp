#include "models/plans/csr.hpp"

#include <string>
#include <utility>

#include "core/error.hpp"

namespace tpudist {
namespace {

// A matrix with room for one entry in row `index[i]` for each i whose index is not negative.
// begin[j + 1] is where row j begins; filling row j counts it up to the row's end.
Csr empty_rows(std::span<const std::int32_t> index, std::int64_t rows) {
  Csr result;
  result.begin.assign(rows + 1, 0);
  for (const std::int32_t row : index) {
    if (row >= 0) ++result.begin[row + 1];
  }
  result.source.resize(starts_of_rows(result.begin));
  return result;
}

}  // namespace

void refuse_index(std::int64_t value) {
  throw Error(ErrorKind::failed, "a plan needs " + std::to_string(value) +
                                     " rows, more than 32-bit indices reach: use fewer "
                                     "configurations in a slate or fewer slates in a unit");
}

std::int32_t starts_of_rows(std::span<std::int32_t> begin) {
  std::int64_t entries = 0;
  for (std::int32_t& count : begin.subspan(1))
    entries += std::exchange(count, static_cast<std::int32_t>(entries));
  return to_index32(entries);
}

Csr transpose(const Csr& matrix, std::int64_t columns) {
  Csr result = empty_rows(matrix.source, columns);
  result.weight.resize(matrix.weight.size());
  for (std::int64_t row = 0; row < matrix.rows(); ++row) {
    for (std::int32_t e = matrix.begin[row]; e < matrix.begin[row + 1]; ++e) {
      const std::int32_t place = result.begin[matrix.source[e] + 1]++;
      result.source[place] = static_cast<std::int32_t>(row);
      if (!matrix.weight.empty()) result.weight[place] = matrix.weight[e];
    }
  }
  return result;
}

Csr transpose_index(std::span<const std::int32_t> index, std::int64_t size) {
  Csr result = empty_rows(index, size);
  const std::int32_t rows = to_index32(static_cast<std::int64_t>(index.size()));
  for (std::int32_t row = 0; row < rows; ++row) {
    if (index[row] >= 0) result.source[result.begin[index[row] + 1]++] = row;
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
