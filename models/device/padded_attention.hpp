#pragma once

#include <ATen/core/Tensor.h>

#include <array>
#include <cstdint>

#include "models/operators/attend_nodes.hpp"

// For .cpp files of models/ only: it includes ATen.

// The attentions of attend_nodes.hpp for a device, where many small operations cost more than what
// they compute. The rows of a group are filled up to the number of the largest group, so that one
// operation serves many groups of a member: as many as take `attention.padded_floats` numbers, at least
// one group or, of shares, one row after of it. It is one member's, so that its bits do not depend on
// the others. A number that is not finite can spread to all groups of its member. Shapes and arguments
// as there; `k` and `q` of the linear one are f(k) and f(q).

namespace tpudist {

at::Tensor attend_padded(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                         const NodeAttention& attention, std::int64_t heads);
// d q, d k and d v.
std::array<at::Tensor, 3> attend_padded_gradient(const at::Tensor& q, const at::Tensor& k,
                                                 const at::Tensor& v, const at::Tensor& y,
                                                 const at::Tensor& d_y,
                                                 const NodeAttention& attention,
                                                 std::int64_t heads);

at::Tensor attend_linearly_padded(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                                  const NodeAttention& attention, std::int64_t heads);
// Of what f was taken of: d q and d k hold the derivative min(f, 1).
std::array<at::Tensor, 3> attend_linearly_padded_gradient(const at::Tensor& q, const at::Tensor& k,
                                                          const at::Tensor& v, const at::Tensor& y,
                                                          const at::Tensor& d_y,
                                                          const NodeAttention& attention,
                                                          std::int64_t heads);

}  // namespace tpudist
