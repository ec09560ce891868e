#pragma once

#include <ATen/core/Tensor.h>

#include "models/operators/backend.hpp"
#include "models/operators/row_groups.hpp"

namespace tpudist {

// Normalises every channel over the rows of each group. With the mean m and o = x - shift * m,
// where `shift` [M, C] counts as 1 where it is undefined,
//
//     y = o / sqrt(mean of o^2 + eps)
//
// This is InstanceNorm (Ulyanov et al. 2016, arXiv 1607.08022) over the nodes of a configuration.
// With a learned shift it is the inner part of GraphNorm (Cai et al. 2021, arXiv 2009.03294). Means
// count a row as often as it stands in its group. They are summed in double, in two passes. x and y
// are [M, rows, C], float32 or double. A group of one row gives 0 where the shift is 1.
// Differentiable. On the CPU groups are tasks of the pool. `groups`, pool and device must outlive
// the recorded graph.
at::Tensor normalise_groups(const at::Tensor& x, const at::Tensor& shift, double eps,
                            const RowGroups& groups, const Backend& backend);

}  // namespace tpudist
