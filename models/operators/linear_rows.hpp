#pragma once

#include <ATen/core/Tensor.h>

#include "models/operators/backend.hpp"

namespace tpudist {

// Returns x W + b for each member: `x` [M, R, I], `weight` [M, I, O], `bias` [M, O] or undefined,
// all float32 or all double; the result is [M, R, O]. Differentiable. On the CPU blocks of rows are
// tasks of the pool. The gradients of weight and bias are partial sums over fixed chunks of rows,
// added in order, so the bits do not depend on the number of threads. A member's result does not
// depend on the others. Throws Error for shapes that do not fit.
at::Tensor linear_rows(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias,
                       const Backend& backend);

// Returns factor_r b for each member and row: `bias` [M, 1], `factors` [R], both double; the result
// is [M, R]. Differentiable with respect to the bias, whose gradient is summed in the same order for
// any number of members.
at::Tensor scaled_bias(const at::Tensor& bias, const at::Tensor& factors, const Backend& backend);

}  // namespace tpudist
