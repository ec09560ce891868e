#pragma once

#include "core/thread_pool.hpp"
#include "models/kernels/precision.hpp"
#include "models/operators/backend.hpp"

namespace tpudist {

// The sum of the rows of each plane of x [M, rows, C], added in order: [M, C].
at::Tensor rows_in_order(const at::Tensor& x);

// The operators on the CPU. Blocks of rows, or groups, are tasks of the pool. The members of a call
// are computed one after another; the executor passes one. Partial sums belong to fixed chunks of
// rows and are added in order, so that the bits do not depend on the number of threads. Gradients
// use transposed matrices and no atomics. `pool` must outlive it.
class CpuBackend : public Backend {
 public:
  // linear() rounds float32 operands to `precision`.
  explicit CpuBackend(ThreadPool& pool, Precision precision = Precision::fp32)
      : pool_(pool), precision_(precision) {}

  at::Tensor sum_of_gathered(const std::vector<at::Tensor>& x, const std::vector<GatherView>& index,
                             std::int64_t rows) const override;
  at::Tensor gathered_gradient(const Csr& transposed, const at::Tensor& d_y) const override;
  at::Tensor aggregate(const SparseMatrix& matrix, const at::Tensor& x,
                       Aggregation aggregation) const override;
  at::Tensor aggregate_gradient(const SparseMatrix& matrix, const at::Tensor& x,
                                const at::Tensor& y, const at::Tensor& d_y,
                                Aggregation aggregation) const override;
  at::Tensor linear(const at::Tensor& x, const at::Tensor& weight,
                    const at::Tensor& bias) const override;
  Gradients linear_gradient(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& d_y,
                            bool of_x, bool of_bias) const override;
  at::Tensor of_rows(const at::Tensor& parameter, std::int64_t rows) const override {
    return parameter.unsqueeze(1).expand({-1, rows, -1});
  }
  at::Tensor sum_of_rows(const at::Tensor& x) const override { return rows_in_order(x); }
  bool maps_all_members() const override { return false; }
  // Keeps only the inputs: the backward pass runs each block again, with its own autograd graph.
  at::Tensor map(const RowFunction& function, const std::vector<at::Tensor>& rows,
                 const std::vector<at::Tensor>& parameters) const override;
  at::Tensor map_by_hand(const RowWriter& function, const std::vector<at::Tensor>& rows,
                         std::int64_t channels) const override;
  void map_gradient(const RowGradient& gradient, const std::vector<at::Tensor>& rows,
                    const at::Tensor& d_result, std::vector<at::Tensor>& d_rows) const override;
  at::Tensor sum(const std::vector<at::Tensor>& terms) const override;
  at::Tensor drop(const at::Tensor& x, const DropoutDraw& draw) const override;
  Result normalise(const RowGroups& groups, const at::Tensor& x, const at::Tensor& shift,
                   double eps) const override;
  Gradients normalise_gradient(const RowGroups& groups, const at::Tensor& x,
                               const at::Tensor& shift, const at::Tensor& kept,
                               const at::Tensor& d_y) const override;
  Result softmax_gate(const RowGroups& groups, const at::Tensor& x,
                      const at::Tensor& temperature) const override;
  Gradients softmax_gate_gradient(const RowGroups& groups, const at::Tensor& x,
                                  const at::Tensor& temperature, const at::Tensor& kept,
                                  const at::Tensor& d_y) const override;
  at::Tensor attend(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                    const NodeAttention& attention, std::int64_t heads) const override;
  std::array<at::Tensor, 3> attend_gradient(const at::Tensor& q, const at::Tensor& k,
                                            const at::Tensor& v, const at::Tensor& y,
                                            const at::Tensor& d_y, const NodeAttention& attention,
                                            std::int64_t heads) const override;
  std::array<at::Tensor, 3> attend_linearly(const at::Tensor& q, const at::Tensor& k,
                                            const at::Tensor& v, const NodeAttention& attention,
                                            std::int64_t heads) const override;
  std::array<at::Tensor, 3> attend_linearly_gradient(const at::Tensor& q, const at::Tensor& k,
                                                     const at::Tensor& v,
                                                     const std::array<at::Tensor, 3>& result,
                                                     const at::Tensor& d_y,
                                                     const NodeAttention& attention,
                                                     std::int64_t heads) const override;
  at::Tensor pool(const Readout& readout, const at::Tensor& x,
                  Aggregation aggregation) const override;
  at::Tensor pool_gradient(const Readout& readout, const at::Tensor& x, const at::Tensor& y,
                           const at::Tensor& d_y, Aggregation aggregation) const override;

 private:
  // Runs body(task) for tasks 0 .. count - 1, which use ATen and write to different places.
  void for_tasks(std::int64_t count, const std::function<void(std::int64_t)>& body) const;

  ThreadPool& pool_;
  Precision precision_;
};

// Returns a b of matrices [m, k] and [k, n] or of batches of them, of one dtype, in the calling
// thread; add_product adds it to `sum`, whose matrices lie row by row. In float32 by gemm().
at::Tensor product(const at::Tensor& a, const at::Tensor& b);
void add_product(const at::Tensor& a, const at::Tensor& b, const at::Tensor& sum);

}  // namespace tpudist
