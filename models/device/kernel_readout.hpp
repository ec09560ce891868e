#pragma once

#include <ATen/core/Tensor.h>

#include "models/kernels/pooled_rows.hpp"
#include "models/plans/plan_shape.hpp"

namespace tpudist {

// Backend::pool and pool_gradient, computed by the kernels of pooled_rows.hpp.
at::Tensor pool_by_kernels(const ReadoutPointers& readout, const at::Tensor& x,
                           Aggregation aggregation);
at::Tensor pool_gradient_by_kernels(const ReadoutPointers& readout, const at::Tensor& x,
                                    const at::Tensor& y, const at::Tensor& d_y,
                                    Aggregation aggregation);

}  // namespace tpudist
