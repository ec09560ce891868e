#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "models/operators/gather_view.hpp"
#include "models/operators/row_groups.hpp"
#include "models/plans/plan.hpp"
#include "models/plans/plan_shape.hpp"

// For .cpp files of models/ only: it includes ATen.

namespace tpudist {

// A row-wise function, written with differentiable operations of ATen. It gets a block of rows of
// every input, each [rows, M, C_i], and the parameters, each [M, ...]. It returns a tensor whose
// row i depends only on row i of the inputs. It is called from several threads at once.
using RowFunction = std::function<at::Tensor(const std::vector<at::Tensor>& rows,
                                             const std::vector<at::Tensor>& parameters)>;

// The handwritten backward pass of a function without parameters. It gets a block of rows of every
// input and of d loss / d result. It writes d loss / d input into the blocks of `d_rows`, which are
// undefined for inputs that take no gradient.
using RowGradient =
    std::function<void(const std::vector<at::Tensor>& rows, const at::Tensor& d_result,
                       std::vector<at::Tensor>& d_rows)>;

// Number of members times number of channels of rows [rows, M, C].
inline std::int64_t columns(const at::Tensor& x) {
  return x.size(1) * x.size(2);
}
// Uninitialised rows [rows, M, C] with the M, C and type of `x`.
at::Tensor rows_like(const at::Tensor& x, std::int64_t rows);

// What one draw keeps or drops: one channel of a row, or a whole row.
enum class Dropped { channels, rows };

// The arguments of one call of drop_rows.
struct DropoutDraw {
  Dropped dropped;
  double rate;
  std::vector<std::uint64_t> member_keys;
  std::uint32_t layer;
  std::span<const std::uint64_t> row_keys;
};

// Computes the operators of a call, in the threads of a pool (CpuBackend) or on a device
// (make_device_backend). Its functions are the forward and backward passes of the operators, for
// all members in one call. The headers of the operators say what each computes, and operators.cpp
// makes them differentiable. Unless said otherwise, tensors are contiguous, [rows, M, C], float32
// or double, in the memory of the backend's device. Matrices, indices and groups are in host
// memory. Sums are added in a fixed order, and a member's numbers do not depend on the other
// members. Immutable, thread-safe.
class Backend {
 public:
  virtual ~Backend() = default;

  // Result: what a forward pass returns, and what it keeps for its backward pass. Gradients: what a
  // backward pass returns. A gradient that is not wanted is undefined.
  struct Result {
    at::Tensor y, kept;
  };
  struct Gradients {
    at::Tensor x, parameter, bias = {};
  };

  // sum_of_gathered with `rows` rows, and d x of one term, by the transpose of its index.
  virtual at::Tensor sum_of_gathered(const std::vector<at::Tensor>& x,
                                     const std::vector<GatherView>& index,
                                     std::int64_t rows) const = 0;
  virtual at::Tensor gathered_gradient(const Csr& transposed, const at::Tensor& d_y) const = 0;

  // aggregate_rows, and d x. Only the gradient of a maximum uses x and y.
  virtual at::Tensor aggregate(const SparseMatrix& matrix, const at::Tensor& x,
                               Aggregation aggregation) const = 0;
  virtual at::Tensor aggregate_gradient(const SparseMatrix& matrix, const at::Tensor& x,
                                        const at::Tensor& y, const at::Tensor& d_y,
                                        Aggregation aggregation) const = 0;

  // linear_rows; `bias` may be undefined. Gradients: d weight, and d x and d bias where wanted.
  virtual at::Tensor linear(const at::Tensor& x, const at::Tensor& weight,
                            const at::Tensor& bias) const = 0;
  virtual Gradients linear_gradient(const at::Tensor& x, const at::Tensor& weight,
                                    const at::Tensor& d_y, bool of_x, bool of_bias) const = 0;

  // map_rows: once for functions that autograd differentiates, and once for those with a
  // handwritten gradient.
  virtual at::Tensor map(const RowFunction& function, const std::vector<at::Tensor>& rows,
                         const std::vector<at::Tensor>& parameters) const = 0;
  virtual at::Tensor map_by_hand(const RowFunction& function,
                                 const std::vector<at::Tensor>& rows) const = 0;
  virtual void map_gradient(const RowGradient& gradient, const std::vector<at::Tensor>& rows,
                            const at::Tensor& d_result, std::vector<at::Tensor>& d_rows) const = 0;

  // The sum of at least two tensors of one shape, added in their order: d x of split_uses.
  virtual at::Tensor sum(const std::vector<at::Tensor>& terms) const = 0;

  // drop_rows, which is its own transpose.
  virtual at::Tensor drop(const at::Tensor& x, const DropoutDraw& draw) const = 0;

  // normalise_groups; `shift` may be undefined. `parameter` of its gradients is d shift.
  virtual Result normalise(const RowGroups& groups, const at::Tensor& x, const at::Tensor& shift,
                           double eps) const = 0;
  virtual Gradients normalise_gradient(const RowGroups& groups, const at::Tensor& x,
                                       const at::Tensor& shift, const at::Tensor& kept,
                                       const at::Tensor& d_y) const = 0;

  // softmax_gate. It keeps the softmax; `parameter` of its gradients is d temperature.
  virtual Result softmax_gate(const RowGroups& groups, const at::Tensor& x,
                              const at::Tensor& temperature) const = 0;
  virtual Gradients softmax_gate_gradient(const RowGroups& groups, const at::Tensor& x,
                                          const at::Tensor& temperature, const at::Tensor& kept,
                                          const at::Tensor& d_y) const = 0;

  // pool_rows, and d x from x, y and d y. y and d y are double [configurations, M, C].
  virtual at::Tensor pool(const Readout& readout, const at::Tensor& x,
                          Aggregation aggregation) const = 0;
  virtual at::Tensor pool_gradient(const Readout& readout, const at::Tensor& x, const at::Tensor& y,
                                   const at::Tensor& d_y, Aggregation aggregation) const = 0;
};

}  // namespace tpudist
