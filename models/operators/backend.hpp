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

// A function of single rows, written with differentiable operations of ATen: it gets a block of rows
// of every input, each [rows, M, C_i], and the parameters, each [M, ...], and returns a tensor whose
// row i depends on row i of the inputs alone. It is called from several threads at once.
using RowFunction = std::function<at::Tensor(const std::vector<at::Tensor>& rows,
                                             const std::vector<at::Tensor>& parameters)>;

// The backward pass of a function without parameters, written by hand: it gets a block of rows of every
// input and of d loss / d result, and writes d loss / d input into the blocks of `d_rows`, which are
// undefined for inputs that take no gradient.
using RowGradient =
    std::function<void(const std::vector<at::Tensor>& rows, const at::Tensor& d_result,
                       std::vector<at::Tensor>& d_rows)>;

// What is kept or dropped by one draw.
enum class Dropped { channels, rows };

// What one call of drop_rows draws with.
struct DropoutDraw {
  Dropped dropped;
  double rate;
  std::vector<std::uint64_t> member_keys;
  std::uint32_t layer;
  std::span<const std::uint64_t> row_keys;
};

// Who computes the operators of a call: the threads of a pool (CpuBackend), or a device
// (make_device_backend). These are the forward and backward passes of the operators, for all members in
// one call; the headers of the operators say what each computes, and operators.cpp makes them
// differentiable. Tensors lie where the backend computes and are contiguous, [rows, M, C], float32 or
// double, unless said otherwise. Matrices, indices and groups are the host's objects. Sums are added in
// a fixed order, and a member's numbers do not depend on the other members. Immutable, thread-safe.
class Backend {
 public:
  virtual ~Backend() = default;

  // What a forward pass gives and keeps for its backward pass, and gradients. One that is not wanted is
  // undefined.
  struct Result {
    at::Tensor y, kept;
  };
  struct Gradients {
    at::Tensor x, parameter, bias = {};
  };

  // sum_of_gathered of `rows` rows, and d x of one term by its transposed index.
  virtual at::Tensor sum_of_gathered(const std::vector<at::Tensor>& x,
                                     const std::vector<GatherView>& index,
                                     std::int64_t rows) const = 0;
  virtual at::Tensor gathered_gradient(const Csr& transposed, const at::Tensor& d_y) const = 0;

  // aggregate_rows, and d x. Only the gradient of a maximum takes x and y.
  virtual at::Tensor aggregate(const SparseMatrix& matrix, const at::Tensor& x,
                               Aggregation aggregation) const = 0;
  virtual at::Tensor aggregate_gradient(const SparseMatrix& matrix, const at::Tensor& x,
                                        const at::Tensor& y, const at::Tensor& d_y,
                                        Aggregation aggregation) const = 0;

  // linear_rows; `bias` may be undefined. Gradients: d weight, and those of rows and bias where wanted.
  virtual at::Tensor linear(const at::Tensor& x, const at::Tensor& weight,
                            const at::Tensor& bias) const = 0;
  virtual Gradients linear_gradient(const at::Tensor& x, const at::Tensor& weight,
                                    const at::Tensor& d_y, bool of_x, bool of_bias) const = 0;

  // map_rows: differentiable as the function is; and where its gradient is written by hand.
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

  // normalise_groups; `shift` may be undefined. The parameter is the shift.
  virtual Result normalise(const RowGroups& groups, const at::Tensor& x, const at::Tensor& shift,
                           double eps) const = 0;
  virtual Gradients normalise_gradient(const RowGroups& groups, const at::Tensor& x,
                                       const at::Tensor& shift, const at::Tensor& kept,
                                       const at::Tensor& d_y) const = 0;

  // softmax_gate. It keeps the softmax; the parameter is the temperature.
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
