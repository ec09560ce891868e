#pragma once

#include <ATen/core/Tensor.h>

#include "models/operators/backend.hpp"
#include "models/operators/row_groups.hpp"

namespace tpudist {

// Cross-configuration attention of the 1st place of "Fast or Slow?". For each channel
//
//     y = [x, x * softmax(x / temperature)]
//
// where the softmax runs over the rows of a group, and a row counts as often as it stands there. x
// is [M, rows, C], y [M, rows, 2 C], `temperature` [M], all float32 or all double; sums are in double.
// Differentiable in both. On the CPU groups are tasks of the pool. `groups`, pool and device must
// outlive the recorded graph.
at::Tensor softmax_gate(const at::Tensor& x, const at::Tensor& temperature, const RowGroups& groups,
                        const Backend& backend);

}  // namespace tpudist
