#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <span>
#include <vector>

#include "models/operators/backend.hpp"

namespace tpudist {

// Dropout whose draw depends on what a row represents and not on where it lies. With
// Dropped::channels each channel of a row is kept with probability 1 - rate and divided by that
// probability. With Dropped::rows a whole row is kept unchanged with that probability. The draw is
// a pure function (Philox4x32-10, Salmon et al. 2011) of the member's key, `layer`, the channel and
// the row's key. So equal rows of dense, refined and chunked plans drop the same elements. x is
// [M, rows, C]; `member_keys` [M], `row_keys` [rows]; 0 <= rate < 1, exact to 2^-16.
// Differentiable. `row_keys` must outlive the recorded graph.
at::Tensor drop_rows(const at::Tensor& x, Dropped dropped, double rate,
                     std::span<const std::uint64_t> member_keys, std::uint32_t layer,
                     std::span<const std::uint64_t> row_keys, const Backend& backend);

}  // namespace tpudist
