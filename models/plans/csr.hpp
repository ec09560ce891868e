#pragma once

#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "models/plans/plan.hpp"

namespace tpudist {

// One weighted entry of a sparse matrix on its way into a Csr.
struct CsrEntry {
  std::int32_t row = 0;
  std::int32_t source = 0;
  float weight = 1;
};

// Builds a matrix of `rows` rows: entries of a row sorted by source, equal ones merged (weights
// added in double, in the order given). Every row index must be below `rows`.
Csr make_csr(std::int64_t rows, std::span<const CsrEntry> entries);

// The exact transpose of a matrix with `columns` columns: same weights, entries sorted.
Csr transpose(const Csr& matrix, std::int64_t columns);

// For each of `groups` values the rows whose index it is, weights 1; negative ones are left out.
Csr rows_of(std::span<const std::int32_t> index, std::int64_t groups);

// Throws Error: an index does not fit 32 bits.
[[noreturn]] void refuse_index(std::int64_t value);

// Narrows an index that comes from counting; throws Error when it does not fit 32 bits.
inline std::int32_t to_index32(std::int64_t value) {
  if (value < 0 || value > std::numeric_limits<std::int32_t>::max()) refuse_index(value);
  return static_cast<std::int32_t>(value);
}

}  // namespace tpudist
