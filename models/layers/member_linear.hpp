#pragma once

#include <ATen/core/Tensor.h>

namespace tpudist {

// x W + b inside a row function (models/operators/map_rows.hpp), with ATen's differentiable
// operations: x [rows, M, I], `weight` [M, I, O], `bias` [M, O]. For narrow products; wide ones take
// linear_rows, which knows the project's own kernels.
at::Tensor member_linear(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias);

}  // namespace tpudist
