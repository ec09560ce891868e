#pragma once

#include <ATen/core/Tensor.h>

#include "models/kernels/group_rows.hpp"
#include "models/operators/backend.hpp"

namespace tpudist {

// The functions of Backend on groups, computed by the kernels of group_rows.hpp.
Backend::Result normalise_by_kernels(const GroupPointers& groups, const at::Tensor& x,
                                     const at::Tensor& shift, double eps);
Backend::Gradients normalise_gradient_by_kernels(const GroupPointers& groups, const at::Tensor& x,
                                                 const at::Tensor& shift, const at::Tensor& kept,
                                                 const at::Tensor& d_y);
Backend::Result softmax_gate_by_kernels(const GroupPointers& groups, const at::Tensor& x,
                                        const at::Tensor& temperature);
Backend::Gradients softmax_gate_gradient_by_kernels(const GroupPointers& groups,
                                                    const at::Tensor& x,
                                                    const at::Tensor& temperature,
                                                    const at::Tensor& kept, const at::Tensor& d_y);

}  // namespace tpudist
