#pragma once

#include <ATen/core/Tensor.h>

#include <array>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "models/operators/plan_views.hpp"
#include "models/plans/plan.hpp"

// For .cpp files of models/ only: it includes ATen.

namespace tpudist {

// Rows of M members are tensors [M, rows, C]. Each member's matrix, its plane, is dense, and planes
// begin at multiples of kPlaneBytes from the first one. So a member is computed by the same call with
// the same alignment for every M.

inline constexpr std::int64_t kPlaneBytes = 256;

// Uninitialised rows of this kind.
at::Tensor make_rows(std::int64_t members, std::int64_t rows, std::int64_t channels,
                     const at::TensorOptions& options);
// The same with the M, C and type of `x`.
at::Tensor rows_like(const at::Tensor& x, std::int64_t rows);
inline at::Tensor rows_like(const at::Tensor& x) {
  return rows_like(x, x.size(1));
}
// The plane of a member; T is the type of `x`.
template <typename T>
const T* plane(const at::Tensor& x, std::int64_t member) {
  return x.const_data_ptr<T>() + member * x.stride(0);
}
template <typename T>
T* mutable_plane(const at::Tensor& x, std::int64_t member) {
  return x.mutable_data_ptr<T>() + member * x.stride(0);
}
// `x` [M, rows, C] if its planes lie as above, otherwise a copy with such planes. Differentiable.
at::Tensor as_planes(const at::Tensor& x);

// A row-wise function, written with differentiable operations of ATen. It gets a block of rows of
// every input, each [1, rows, C_i], and the parameters, each [1, 1, ...], of one member; on joined
// units the rows of all members, and each parameter for every row, [M, rows, ...]. It returns a tensor
// [M, rows, C] whose row i depends only on row i of the inputs. It is called from several threads
// at once.
using RowFunction = std::function<at::Tensor(const std::vector<at::Tensor>& rows,
                                             const std::vector<at::Tensor>& parameters)>;

// A function without parameters that writes its result, and its handwritten backward pass. They get
// a block of rows of every input and of d loss / d result, [M, rows, C_i]. Each number that they
// write depends only on the numbers at its position, or is a copy. The gradient writes d loss / d
// input into the blocks of `d_rows`, which are undefined for inputs that take no gradient.
using RowWriter = std::function<void(const std::vector<at::Tensor>& rows, at::Tensor& result)>;
using RowGradient =
    std::function<void(const std::vector<at::Tensor>& rows, const at::Tensor& d_result,
                       std::vector<at::Tensor>& d_rows)>;

struct NodeAttention;  // models/operators/attend_nodes.hpp

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
// all members in one call. On a joined plan (models/plans/join_plans.hpp) rows are [M, rows, C], or
// with several blocks [1, rows, C], and the M of parameters and their gradients stands for M * slots
// leaves. The headers of the operators say what each computes, and
// differentiable.cpp makes them differentiable. Unless said otherwise, tensors are rows
// [M, rows, C] as above, float32 or double, in the memory of the backend's device. Matrices,
// indices and groups are in host memory. Sums are added in a fixed order, and a member's bits do
// not depend on the other members. Immutable, thread-safe.
class Backend {
 public:
  virtual ~Backend() = default;

  // Result: what a forward pass returns, and what its backward pass needs. Gradients: what a
  // backward pass returns; a gradient that is not wanted is undefined.
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

  // linear_rows; the weight lies like rows, and `bias` may be undefined. Gradients: d weight, and
  // d x and d bias where wanted.
  virtual at::Tensor linear(const at::Tensor& x, const at::Tensor& weight,
                            const at::Tensor& bias) const = 0;
  virtual Gradients linear_gradient(const at::Tensor& x, const at::Tensor& weight,
                                    const at::Tensor& d_y, bool of_x, bool of_bias) const = 0;

  // A parameter [M, C] for each row, [M, rows, C]. sum_of_rows gives its gradient: the sum of the
  // rows that have the same parameter, [M, C].
  virtual at::Tensor of_rows(const at::Tensor& parameter, std::int64_t rows) const = 0;
  virtual at::Tensor sum_of_rows(const at::Tensor& x) const = 0;

  // map_rows: the first for functions that autograd differentiates, of one member unless
  // maps_all_members(); the second for functions with a handwritten gradient, whose result has
  // `channels`.
  virtual bool maps_all_members() const = 0;
  virtual at::Tensor map(const RowFunction& function, const std::vector<at::Tensor>& rows,
                         const std::vector<at::Tensor>& parameters) const = 0;
  virtual at::Tensor map_by_hand(const RowWriter& function, const std::vector<at::Tensor>& rows,
                                 std::int64_t channels) const = 0;
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

  // attend_nodes, and d q, d k and d v.
  virtual at::Tensor attend(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                            const NodeAttention& attention, std::int64_t heads) const = 0;
  virtual std::array<at::Tensor, 3> attend_gradient(const at::Tensor& q, const at::Tensor& k,
                                                    const at::Tensor& v, const at::Tensor& y,
                                                    const at::Tensor& d_y,
                                                    const NodeAttention& attention,
                                                    std::int64_t heads) const = 0;
  // attend_linearly of f(q) and f(k): returns y, s and z; s and z may be undefined. Gradients: of
  // v, and of the arguments of f.
  virtual std::array<at::Tensor, 3> attend_linearly(const at::Tensor& q, const at::Tensor& k,
                                                    const at::Tensor& v,
                                                    const NodeAttention& attention,
                                                    std::int64_t heads) const = 0;
  virtual std::array<at::Tensor, 3> attend_linearly_gradient(
      const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
      const std::array<at::Tensor, 3>& result, const at::Tensor& d_y,
      const NodeAttention& attention, std::int64_t heads) const = 0;

  // pool_rows, and d x from x, y and d y. y and d y are double [M, configurations, C].
  virtual at::Tensor pool(const Readout& readout, const at::Tensor& x,
                          Aggregation aggregation) const = 0;
  virtual at::Tensor pool_gradient(const Readout& readout, const at::Tensor& x, const at::Tensor& y,
                                   const at::Tensor& d_y, Aggregation aggregation) const = 0;
};

}  // namespace tpudist
