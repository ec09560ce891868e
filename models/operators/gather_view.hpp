#pragma once

#include <cstdint>
#include <span>

#include "models/plans/plan.hpp"

namespace tpudist {

// An index with its transpose: row i of the result is row index[i] >= 0 of the input. Borrowed.
struct GatherView {
  GatherView() = default;  // the identity
  GatherView(const GatherIndex& gather)
      : index(gather.index), transposed(gather.is_identity() ? nullptr : &gather.transposed) {}
  GatherView(std::span<const std::int32_t> index, const Csr& transposed)
      : index(index), transposed(&transposed) {}
  bool is_identity() const { return transposed == nullptr; }
  std::span<const std::int32_t> index;
  const Csr* transposed = nullptr;
};

}  // namespace tpudist
