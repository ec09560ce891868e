#pragma once

#include <ATen/core/Tensor.h>

#include <vector>

#include "models/operators/backend.hpp"
#include "models/plans/plan.hpp"
#include "models/plans/plan_shape.hpp"

namespace tpudist {

// Pools the rows after the last layer over the nodes of every configuration. x is [M, rows, C],
// float32 or double. The result is [M, configurations, C] in double, so that sums over thousands of
// nodes do not hide the differences between configurations. The weights of the readout must be
// multiplicities (PlanShape::mean_readout false); the mean divides by the number of nodes. Equal
// largest rows share the gradient of a maximum in proportion to the nodes that they represent.
// Differentiable. Sums have a fixed order. Readout, pool and device must outlive the recorded
// graph.
at::Tensor pool_rows(const at::Tensor& x, const Readout& readout, Aggregation aggregation,
                     const Backend& backend);

// Returns the sum of one value of each row over the nodes that it represents, for each
// configuration. `values` [rows]; the result is [configurations].
std::vector<double> config_sums(const Readout& readout, const std::vector<double>& values);
// Returns how many nodes each configuration has: those that its rows represent and those left out.
// [configurations]
std::vector<double> node_counts(const Readout& readout);

}  // namespace tpudist
