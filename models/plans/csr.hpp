#pragma once

#include <cstdint>
#include <limits>
#include <span>
#include <vector>

namespace tpudist {

// A sparse matrix in compressed rows. Its product with dense rows x (spmm) is
// y[i] = sum over e in [begin[i], begin[i + 1]) of weight[e] * x[source[e]]. The entries of a row
// are sorted by source; equal ones are merged and their weights added.
struct Csr {
  std::vector<std::int32_t> begin;   // [rows + 1]
  std::vector<std::int32_t> source;  // [entries]
  std::vector<float> weight;         // [entries]; empty when every weight is 1
  std::int64_t rows() const { return static_cast<std::int64_t>(begin.size()) - 1; }
  std::int64_t entries() const { return static_cast<std::int64_t>(source.size()); }
  float weight_of(std::int64_t entry) const { return weight.empty() ? 1.0f : weight[entry]; }
  // The sum of the weights of a row.
  double total_weight(std::int64_t row) const {
    double total = 0;
    for (std::int64_t e = begin[row]; e < begin[row + 1]; ++e) total += weight_of(e);
    return total;
  }
};

// Returns the exact transpose of a matrix with `columns` columns: same weights, entries sorted.
Csr transpose(const Csr& matrix, std::int64_t columns);

// Returns the transpose of a gather index: row j of the result lists the rows i with index[i] = j,
// weights 1. Rows with a negative index are omitted. `size`: number of values of the index.
Csr transpose_index(std::span<const std::int32_t> index, std::int64_t size);

// The rows of a matrix that exceed one chunk, cut into chunks of `length` entries; the last may be
// shorter. A long row is summed in two steps: the entries of each chunk, then its chunks.
struct LongRows {
  std::int64_t length = 0;
  std::vector<std::int64_t> chunk_begin;  // [chunks] first entry of each
  std::vector<std::int32_t> chunk_row;    // [chunks] row of each
  std::vector<std::int32_t> row;          // [long rows]
  std::vector<std::int64_t> begin;        // [long rows + 1] first chunk of each
};

// Finds the rows of more than `length` entries. The cuts of a row depend only on its length.
LongRows split_long_rows(const Csr& matrix, std::int64_t length);

// Replaces begin[i + 1], the number of entries of row i, by the index where row i begins. Whoever
// fills row i then counts begin[i + 1] up to its end. Returns the number of all entries. Throws
// Error if that does not fit 32 bits.
std::int32_t starts_of_rows(std::span<std::int32_t> begin);

// Throws Error: the index does not fit 32 bits.
[[noreturn]] void refuse_index(std::int64_t value);

// Converts a counted index to 32 bits. Throws Error when it does not fit.
inline std::int32_t to_index32(std::int64_t value) {
  if (value < 0 || value > std::numeric_limits<std::int32_t>::max()) refuse_index(value);
  return static_cast<std::int32_t>(value);
}

}  // namespace tpudist
