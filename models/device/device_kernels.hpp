#pragma once

#include <ATen/core/Tensor.h>

#include <array>
#include <cstdint>

#include "models/kernels/row_launches.hpp"
#include "models/operators/attend_nodes.hpp"
#include "models/operators/backend.hpp"
#include "models/plans/plan.hpp"

// For .cpp files of models/ only: it includes ATen.

namespace tpudist {

// The current stream of the tensor's CUDA device; null for a tensor on the CPU.
CUstream_st* stream_of(const at::Tensor& x);

// A tensor [M, ...] of T, whose planes are dense, as kernels take it; null if it is undefined.
template <typename T>
Planes<const T> planes_of(const at::Tensor& x) {
  if (!x.defined()) return {};
  return {x.const_data_ptr<T>(), x.stride(0)};
}
template <typename T>
Planes<T> mutable_planes_of(const at::Tensor& x) {
  if (!x.defined()) return {};
  return {x.mutable_data_ptr<T>(), x.stride(0)};
}
// The columns of rows [M, rows, C].
inline Columns columns_of(const at::Tensor& x, std::int64_t replicas = 1) {
  return {replicas * x.size(2), x.size(0)};
}

// The `parts` of a launch over the matrix for rows like those of `x`, of type `type`; undefined if
// no row of the matrix is long.
at::Tensor parts_of(const CsrPointers& matrix, const at::Tensor& x, at::ScalarType type,
                    std::int64_t replicas = 1);

// The sum of all rows of each member, [M, C] of x [M, rows, C] with dense planes.
at::Tensor summed_rows(const at::Tensor& x);

// y = rows W for each member, or rows W^T if `transposed`, in one call of cuBLASLt. rows [M, R, I],
// W [M, I, O] (transposed: [M, O, I]) and y [M, R, O] are planes on one CUDA device; y is float32,
// the others are float32 (`tf32`: rounded to TF32) or bfloat16. A row's bits depend neither on M nor
// on R: the algorithm depends on I and O, and none may cut sums in parts. Returns false and does not
// write y for other types or memory, a size of zero, no algorithm or one that refuses the shape, or
// a build without GPU kernels.
// Throws Error if the product is refused.
bool multiply_members(const at::Tensor& rows, const at::Tensor& weight, bool transposed, bool tf32,
                      const at::Tensor& y);

// y = a b of float32 [R, I] and [I, O] on one CUDA device, rounded to TF32 by this call alone:
// LibTorch's own switch is one for all threads. One stride of each is 1. Returns false and does not
// write y for other memory or a build without GPU kernels. Throws Error if the product is refused.
bool multiply_in_tf32(const at::Tensor& a, const at::Tensor& b, const at::Tensor& y);

// The attentions of attend_nodes.hpp for a device, where many small operations cost more than their
// arithmetic. Groups are padded to the largest, so that one operation serves many groups of all
// members: as many as fit `attention.padded_floats` numbers, at least one group, or for shares one
// row after. Padding adds zeros to sums of fixed order, so the bits of a group depend neither on
// other groups nor on other members. Shapes and arguments are as there, but results have a row for
// each row of the lists `after` or `before`, and linear attention takes f(k) and f(q) as `k` and `q`.
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
// Gradients of the arguments of f: d q and d k include its derivative, min(f, 1).
std::array<at::Tensor, 3> attend_linearly_padded_gradient(const at::Tensor& q, const at::Tensor& k,
                                                          const at::Tensor& v, const at::Tensor& y,
                                                          const at::Tensor& d_y,
                                                          const NodeAttention& attention,
                                                          std::int64_t heads);

// The functions of Backend on groups, computed by the project's kernels. `shift` is [M, C] or, in a
// joined plan, [M, runs, C], and `temperature` [M] or [M, runs]. The gradients of both are those of
// each group, [M, groups, C] in double.
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

// Backend::pool and pool_gradient, computed by the project's kernels.
at::Tensor pool_by_kernels(const ReadoutPointers& readout, const at::Tensor& x,
                           Aggregation aggregation);
at::Tensor pool_gradient_by_kernels(const ReadoutPointers& readout, const at::Tensor& x,
                                    const at::Tensor& y, const at::Tensor& d_y,
                                    Aggregation aggregation);

}  // namespace tpudist
