#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "models/operators/drop_rows.hpp"
#include "models/operators/gather_view.hpp"
#include "models/operators/row_groups.hpp"
#include "models/plans/plan.hpp"
#include "models/plans/plan_shape.hpp"

namespace tpudist {

// The forward and backward passes of the operators beside it on a device, for all members in one call.
// Tensors lie on the device and are contiguous, [rows, M, C], float32 or double, unless said otherwise.
// Matrices, indices and groups are the host's objects; the implementation knows their copies on the
// device (DeviceArrays) and throws Error for one that it was not given. Formulas, shapes and orders are
// those of the operators' headers. Sums are added in a fixed order, without atomics. Immutable,
// thread-safe.
//
// linear_rows and map_rows need no such functions: on a device they are ATen's.
class DeviceOperators {
 public:
  virtual ~DeviceOperators() = default;

  // sum_of_gathered of `rows` rows. Its gradients are products with the transposed indices.
  virtual at::Tensor sum_of_gathered(const std::vector<at::Tensor>& x,
                                     const std::vector<GatherView>& index,
                                     std::int64_t rows) const = 0;
  // The product of a matrix with dense rows, and these rows divided by the matrix's sums of weights.
  virtual at::Tensor multiply(const Csr& matrix, std::int64_t replicas,
                              const at::Tensor& x) const = 0;
  virtual at::Tensor divide_by_totals(const SparseMatrix& matrix, const at::Tensor& x) const = 0;

  // aggregate_rows by maximum, and d x.
  virtual at::Tensor largest(const SparseMatrix& matrix, const at::Tensor& x) const = 0;
  virtual at::Tensor largest_gradient(const SparseMatrix& matrix, const at::Tensor& x,
                                      const at::Tensor& best, const at::Tensor& d_y) const = 0;

  // drop_rows, which is its own transpose.
  virtual at::Tensor drop(const at::Tensor& x, Dropped dropped, double rate,
                          std::span<const std::uint64_t> member_keys, std::uint32_t layer,
                          std::span<const std::uint64_t> row_keys) const = 0;

  // What a forward pass gives and keeps for its backward pass, and two gradients. Where a gradient is
  // not wanted it is undefined.
  struct Result {
    at::Tensor y, kept;
  };
  struct Gradients {
    at::Tensor x, parameter;
  };

  // normalise_groups; `shift` may be undefined. It keeps mean and scale, double [2, groups, M * C].
  virtual Result normalise(const RowGroups& groups, const at::Tensor& x, const at::Tensor& shift,
                           double eps) const = 0;
  virtual Gradients normalise_gradient(const RowGroups& groups, const at::Tensor& x,
                                       const at::Tensor& shift, const at::Tensor& kept,
                                       const at::Tensor& d_y) const = 0;

  // softmax_gate. It keeps the softmax.
  virtual Result softmax_gate(const RowGroups& groups, const at::Tensor& x,
                              const at::Tensor& temperature) const = 0;
  virtual Gradients softmax_gate_gradient(const RowGroups& groups, const at::Tensor& x,
                                          const at::Tensor& temperature, const at::Tensor& kept,
                                          const at::Tensor& d_y) const = 0;

  // pool_rows, and d x from x, y and d y, of which the latter two are double [configurations, M, C].
  virtual at::Tensor pool(const Readout& readout, const at::Tensor& x,
                          Aggregation aggregation) const = 0;
  virtual at::Tensor pool_gradient(const Readout& readout, const at::Tensor& x, const at::Tensor& y,
                                   const at::Tensor& d_y, Aggregation aggregation) const = 0;
};

}  // namespace tpudist
