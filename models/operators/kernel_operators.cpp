#include "models/operators/kernel_operators.hpp"

#include <ATen/Dispatch.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>

#include "models/kernels/dropped_rows.hpp"
#include "models/kernels/gather_rows.hpp"
#include "models/operators/kernel_groups.hpp"
#include "models/operators/kernel_readout.hpp"
#include "models/operators/kernel_stream.hpp"

namespace tpudist {
namespace {

at::Tensor result_like(const at::Tensor& x, std::int64_t rows) {
  return at::empty({rows, x.size(1), x.size(2)}, x.options());
}

class KernelOperators : public DeviceOperators {
 public:
  explicit KernelOperators(DeviceArrays arrays) : arrays_(std::move(arrays)) {}

  at::Tensor sum_of_gathered(const std::vector<at::Tensor>& x, const std::vector<GatherView>& index,
                             std::int64_t rows) const override {
    at::Tensor y = result_like(x.front(), rows);
    AT_DISPATCH_FLOATING_TYPES(y.scalar_type(), "sum_of_gathered", [&] {
      for (std::size_t t = 0; t < x.size(); ++t) {
        const std::int32_t* const taken =
            index[t].is_identity() ? nullptr : arrays_.find(index[t].index);
        launch_take(taken, rows, columns(y), x[t].const_data_ptr<scalar_t>(), t > 0,
                    y.mutable_data_ptr<scalar_t>(), stream_of(y));
      }
    });
    return y;
  }

  at::Tensor multiply(const Csr& matrix, std::int64_t replicas,
                      const at::Tensor& x) const override {
    at::Tensor y = result_like(x, matrix.rows() * replicas);
    AT_DISPATCH_FLOATING_TYPES(x.scalar_type(), "multiply", [&] {
      launch_aggregate(arrays_.find(matrix), replicas * columns(x), x.const_data_ptr<scalar_t>(),
                       y.mutable_data_ptr<scalar_t>(), stream_of(x));
    });
    return y;
  }

  at::Tensor divide_by_totals(const SparseMatrix& matrix, const at::Tensor& x) const override {
    at::Tensor y = at::empty_like(x);
    AT_DISPATCH_FLOATING_TYPES(x.scalar_type(), "divide_by_totals", [&] {
      launch_divide_by_totals(arrays_.find(matrix.forward), matrix.replicas * columns(x),
                              x.const_data_ptr<scalar_t>(), y.mutable_data_ptr<scalar_t>(),
                              stream_of(x));
    });
    return y;
  }

  at::Tensor largest(const SparseMatrix& matrix, const at::Tensor& x) const override {
    at::Tensor best = result_like(x, matrix.forward.rows() * matrix.replicas);
    AT_DISPATCH_FLOATING_TYPES(x.scalar_type(), "largest", [&] {
      launch_max(arrays_.find(matrix.forward), matrix.replicas * columns(x),
                 x.const_data_ptr<scalar_t>(), best.mutable_data_ptr<scalar_t>(), stream_of(x));
    });
    return best;
  }

  at::Tensor largest_gradient(const SparseMatrix& matrix, const at::Tensor& x,
                              const at::Tensor& best, const at::Tensor& d_y) const override {
    const at::Tensor share = at::empty_like(best), d_x = at::empty_like(x);
    const std::int64_t width = matrix.replicas * columns(x);
    AT_DISPATCH_FLOATING_TYPES(x.scalar_type(), "largest_gradient", [&] {
      launch_max_shares(arrays_.find(matrix.forward), width, x.const_data_ptr<scalar_t>(),
                        best.const_data_ptr<scalar_t>(), d_y.const_data_ptr<scalar_t>(),
                        share.mutable_data_ptr<scalar_t>(), stream_of(x));
      launch_max_gradient(arrays_.find(matrix.transposed), width, x.const_data_ptr<scalar_t>(),
                          best.const_data_ptr<scalar_t>(), share.const_data_ptr<scalar_t>(),
                          d_x.mutable_data_ptr<scalar_t>(), stream_of(x));
    });
    return d_x;
  }

  at::Tensor drop(const at::Tensor& x, Dropped dropped, double rate,
                  std::span<const std::uint64_t> member_keys, std::uint32_t layer,
                  std::span<const std::uint64_t> row_keys) const override {
    at::Tensor y = at::empty_like(x);
    AT_DISPATCH_FLOATING_TYPES(x.scalar_type(), "drop", [&] {
      launch_drop(dropped == Dropped::rows, x.size(0), x.size(1), x.size(2), rate,
                  member_keys.data(), layer, arrays_.find(row_keys), x.const_data_ptr<scalar_t>(),
                  y.mutable_data_ptr<scalar_t>(), stream_of(x));
    });
    return y;
  }

  Result normalise(const RowGroups& groups, const at::Tensor& x, const at::Tensor& shift,
                   double eps) const override {
    return normalise_by_kernels(arrays_.find(groups), x, shift, eps);
  }
  Gradients normalise_gradient(const RowGroups& groups, const at::Tensor& x,
                               const at::Tensor& shift, const at::Tensor& kept,
                               const at::Tensor& d_y) const override {
    return normalise_gradient_by_kernels(arrays_.find(groups), x, shift, kept, d_y);
  }
  Result softmax_gate(const RowGroups& groups, const at::Tensor& x,
                      const at::Tensor& temperature) const override {
    return softmax_gate_by_kernels(arrays_.find(groups), x, temperature);
  }
  Gradients softmax_gate_gradient(const RowGroups& groups, const at::Tensor& x,
                                  const at::Tensor& temperature, const at::Tensor& kept,
                                  const at::Tensor& d_y) const override {
    return softmax_gate_gradient_by_kernels(arrays_.find(groups), x, temperature, kept, d_y);
  }
  at::Tensor pool(const Readout& readout, const at::Tensor& x,
                  Aggregation aggregation) const override {
    return pool_by_kernels(arrays_.find(readout), x, aggregation);
  }
  at::Tensor pool_gradient(const Readout& readout, const at::Tensor& x, const at::Tensor& y,
                           const at::Tensor& d_y, Aggregation aggregation) const override {
    return pool_gradient_by_kernels(arrays_.find(readout), x, y, d_y, aggregation);
  }

 private:
  const DeviceArrays arrays_;
};

}  // namespace

std::unique_ptr<const DeviceOperators> make_kernel_operators(DeviceArrays arrays) {
  return std::make_unique<const KernelOperators>(std::move(arrays));
}

}  // namespace tpudist
