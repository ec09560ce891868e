#include "models/device/device_backend.hpp"

#include <ATen/ATen.h>

#include <algorithm>
#include <optional>

#include "models/device/device_kernels.hpp"
#include "models/kernels/row_kernels.hpp"
#include "models/kernels/row_launches.hpp"

namespace tpudist {
namespace {

// A copy of the planes of x, rounded as the CPU rounds operands: for tests, which run this backend
// on the CPU.
at::Tensor rounded_on_cpu(const at::Tensor& x, Precision precision) {
  const at::Tensor out = rows_like(x);
  for (std::int64_t m = 0; m < x.size(0); ++m) {
    round_rows(precision, {plane<float>(x, m), x.size(2)}, x.size(1), x.size(2),
               {mutable_plane<float>(out, m), x.size(2)});
  }
  return out;
}

// While it lives, LibTorch lets cuBLAS round float32 operands to TF32. The switch is global and
// otherwise off (hold_to_fp32 in models/network/device_context.hpp); one thread queues the
// operations of a device.
class Tf32Products {
 public:
  Tf32Products() { at::globalContext().setAllowTF32CuBLAS(true); }
  ~Tf32Products() { at::globalContext().setAllowTF32CuBLAS(false); }
  Tf32Products(const Tf32Products&) = delete;
  Tf32Products& operator=(const Tf32Products&) = delete;
};

// The largest weight gradient of a member for which the kernel for all members was faster on an
// H200 than cuBLAS's one call per member, in products.
constexpr std::int64_t kMostProducts = std::int64_t{1} << 27;

class DeviceBackend : public Backend {
 public:
  DeviceBackend(DeviceArrays arrays, Precision precision)
      : arrays_(std::move(arrays)), precision_(precision) {}

  at::Tensor sum_of_gathered(const std::vector<at::Tensor>& x, const std::vector<GatherView>& index,
                             std::int64_t rows) const override {
    at::Tensor y = rows_like(x.front(), rows);
    AT_DISPATCH_FLOATING_TYPES(y.scalar_type(), "sum_of_gathered", [&] {
      std::vector<TakenRows<scalar_t>> terms;
      for (std::size_t t = 0; t < x.size(); ++t) {
        terms.push_back({index[t].is_identity() ? nullptr : arrays_.find(index[t].index),
                         planes_of<scalar_t>(x[t])});
      }
      launch_take(terms.data(), static_cast<int>(terms.size()), rows, columns_of(y),
                  mutable_planes_of<scalar_t>(y), stream_of(y));
    });
    return y;
  }

  at::Tensor gathered_gradient(const Csr& transposed, const at::Tensor& d_y) const override {
    return multiply(transposed, 1, d_y);
  }

  at::Tensor aggregate(const SparseMatrix& matrix, const at::Tensor& x,
                       Aggregation aggregation) const override {
    if (aggregation == Aggregation::max) return largest(matrix, x);
    if (aggregation == Aggregation::sum) return multiply(matrix.forward, matrix.replicas, x);
    const at::Tensor y = rows_like(x, matrix.forward.rows() * matrix.replicas);
    walk(matrix.forward, matrix.replicas, x, [&]<typename T>(const Walked<T>& on) {
      launch_mean(on.matrix, arrays_.find_totals(matrix), on.columns, planes_of<T>(x),
                  mutable_planes_of<T>(y), on.parts, stream_of(x));
    });
    return y;
  }
  at::Tensor aggregate_gradient(const SparseMatrix& matrix, const at::Tensor& x,
                                const at::Tensor& y, const at::Tensor& d_y,
                                Aggregation aggregation) const override {
    if (aggregation == Aggregation::max) return largest_gradient(matrix, x, y, d_y);
    if (aggregation == Aggregation::sum) return multiply(matrix.transposed, matrix.replicas, d_y);
    const at::Tensor d_x = rows_like(d_y, matrix.transposed.rows() * matrix.replicas);
    walk(matrix.transposed, matrix.replicas, d_y, [&]<typename T>(const Walked<T>& on) {
      launch_mean_gradient(on.matrix, arrays_.find_totals(matrix), on.columns, planes_of<T>(d_y),
                           mutable_planes_of<T>(d_x), on.parts, stream_of(d_y));
    });
    return d_x;
  }

  at::Tensor linear(const at::Tensor& x, const at::Tensor& weight,
                    const at::Tensor& bias) const override {
    const at::Tensor y = make_rows(x.size(0), x.size(1), weight.size(2), x.options());
    multiply_all(operand(x), operand(weight), false, y);
    return bias.defined() ? y.add_(bias.unsqueeze(1)) : y;
  }
  Gradients linear_gradient(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& d_y,
                            bool of_x, bool of_bias) const override {
    Gradients gradients;
    const at::Tensor right = operand(d_y);
    if (of_x) {
      gradients.x = rows_like(x);
      multiply_all(right, operand(weight), true, gradients.x);
    }
    const std::int64_t products = x.numel() / std::max<std::int64_t>(x.size(0), 1) * d_y.size(2);
    if (precision_ == Precision::fp32 && x.scalar_type() == at::kFloat && products > 0 &&
        products <= kMostProducts) {
      add_weight_gradient({x.size(1), x.size(2), d_y.size(2), of_bias}, x, d_y, gradients);
      return gradients;
    }
    gradients.parameter = rows_like(weight);
    if (of_bias) gradients.bias = summed_rows(d_y);
    const at::Tensor left = operand(x).transpose(1, 2);
    if (x.scalar_type() == at::kDouble) {
      multiply_doubles(left, right, gradients.parameter);
    } else {
      multiply_each(left, right, gradients.parameter);
    }
    return gradients;
  }

  at::Tensor sum_of_rows(const at::Tensor& x) const override { return summed_rows(x); }

  // One call on all rows, whose operations are recorded as they are.
  at::Tensor map(const RowFunction& function, const std::vector<at::Tensor>& rows,
                 const std::vector<at::Tensor>& parameters) const override {
    return function(rows, parameters);
  }
  at::Tensor map_by_hand(const RowWriter& function, const std::vector<at::Tensor>& rows,
                         std::int64_t channels) const override {
    const at::Tensor& x = rows.front();
    at::Tensor result = make_rows(x.size(0), x.size(1), channels, x.options());
    function(rows, result);
    return result;
  }
  void map_gradient(const RowGradient& gradient, const std::vector<at::Tensor>& rows,
                    const at::Tensor& d_result, std::vector<at::Tensor>& d_rows) const override {
    gradient(rows, d_result, d_rows);
  }

  at::Tensor sum(const std::vector<at::Tensor>& terms) const override {
    at::Tensor sum = rows_like(terms[0]);
    at::add_out(sum, terms[0], terms[1]);
    for (std::size_t t = 2; t < terms.size(); ++t) sum.add_(terms[t]);
    return sum;
  }

  at::Tensor drop(const at::Tensor& x, const DropoutDraw& draw) const override {
    at::Tensor y = rows_like(x);
    AT_DISPATCH_FLOATING_TYPES(x.scalar_type(), "drop", [&] {
      launch_drop(draw.dropped == Dropped::rows, x.size(1), columns_of(x), draw.rate,
                  draw.member_keys.data(), draw.layer, arrays_.find(draw.row_keys),
                  planes_of<scalar_t>(x), mutable_planes_of<scalar_t>(y), stream_of(x));
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
  at::Tensor attend(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                    const NodeAttention& attention, std::int64_t heads) const override {
    return attend_padded(q, k, v, attention, heads);
  }
  std::array<at::Tensor, 3> attend_gradient(const at::Tensor& q, const at::Tensor& k,
                                            const at::Tensor& v, const at::Tensor& y,
                                            const at::Tensor& d_y, const NodeAttention& attention,
                                            std::int64_t heads) const override {
    return attend_padded_gradient(q, k, v, y, d_y, attention, heads);
  }
  std::array<at::Tensor, 3> attend_linearly(const at::Tensor& q, const at::Tensor& k,
                                            const at::Tensor& v, const NodeAttention& attention,
                                            std::int64_t heads) const override {
    return {attend_linearly_padded(q, k, v, attention, heads)};
  }
  std::array<at::Tensor, 3> attend_linearly_gradient(const at::Tensor& q, const at::Tensor& k,
                                                     const at::Tensor& v,
                                                     const std::array<at::Tensor, 3>& result,
                                                     const at::Tensor& d_y,
                                                     const NodeAttention& attention,
                                                     std::int64_t heads) const override {
    return attend_linearly_padded_gradient(q, k, v, result[0], d_y, attention, heads);
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
  // The planes of x as operands of products: float32 is rounded to the backend's precision, unless
  // cuBLAS does so.
  at::Tensor operand(const at::Tensor& x) const {
    if (precision_ == Precision::fp32 || x.scalar_type() != at::kFloat) return x;
    if (!x.is_cuda()) return rounded_on_cpu(x, precision_);
    if (precision_ == Precision::tf32) return x;
    return make_rows(x.size(0), x.size(1), x.size(2), x.options().dtype(at::kBFloat16)).copy_(x);
  }

  // y = x W (or x W^T) of operands for each member; in one call if that is known not to change a
  // member's bits.
  void multiply_all(const at::Tensor& x, const at::Tensor& weight, bool transposed,
                    const at::Tensor& y) const {
    const at::Tensor right = transposed ? weight.transpose(1, 2) : weight;
    if (x.scalar_type() == at::kDouble) {
      multiply_doubles(x, right, y);
    } else if (!multiply_members(x, weight, transposed, precision_ == Precision::tf32, y)) {
      multiply_each(x, right, y);
    }
  }

  static void multiply_doubles(const at::Tensor& a, const at::Tensor& b, const at::Tensor& y) {
    const auto strided = [](const at::Tensor& x) {
      return StridedPlanes{planes_of<double>(x), x.stride(1), x.stride(2)};
    };
    launch_double_product(a.size(1), a.size(2), columns_of(y), strided(a), strided(b),
                          mutable_planes_of<double>(y), stream_of(y));
  }

  static void add_weight_gradient(const WeightGradientSizes& sizes, const at::Tensor& x,
                                  const at::Tensor& d_y, Gradients& gradients) {
    const std::int64_t members = x.size(0), chunks = sizes.chunks();
    const at::Tensor y = make_rows(members, sizes.numbers() / sizes.out, sizes.out, x.options()),
                     parts = chunks == 1 ? at::Tensor()
                                         : make_rows(members, chunks, sizes.numbers(), x.options());
    launch_weight_gradient(sizes, members, planes_of<float>(x), planes_of<float>(d_y),
                           mutable_planes_of<float>(y), mutable_planes_of<float>(parts),
                           stream_of(x));
    gradients.parameter = y.narrow(1, 0, sizes.in);
    if (sizes.bias) gradients.bias = y.select(1, sizes.in);
  }

  // y = a b of operands, member by member, with sums in the type of y.
  void multiply_each(const at::Tensor& a, const at::Tensor& b, const at::Tensor& y) const {
    std::optional<Tf32Products> tf32;
    if (y.is_cuda() && precision_ == Precision::tf32) tf32.emplace();
    for (std::int64_t m = 0; m < y.size(0); ++m) {
      at::Tensor to = y[m];
      if (a.scalar_type() == at::kBFloat16) {
        to.copy_(at::mm(a[m], b[m], y.scalar_type()));
      } else {
        at::mm_out(to, a[m], b[m]);
      }
    }
  }

  // A matrix on the device, for rows of T that are `columns` wide.
  template <typename T>
  struct Walked {
    CsrPointers matrix;
    Columns columns;
    Planes<T> parts;
  };
  // launch(walked) in the type of `x`.
  template <typename Launch>
  void walk(const Csr& matrix, std::int64_t replicas, const at::Tensor& x,
            const Launch& launch) const {
    const CsrPointers found = arrays_.find(matrix);
    const Columns columns = columns_of(x, replicas);
    const at::Tensor parts = parts_of(found, x, x.scalar_type(), replicas);
    AT_DISPATCH_FLOATING_TYPES(x.scalar_type(), "walk", [&] {
      launch(Walked<scalar_t>{found, columns, mutable_planes_of<scalar_t>(parts)});
    });
  }

  // The product of a matrix with dense rows.
  at::Tensor multiply(const Csr& matrix, std::int64_t replicas, const at::Tensor& x) const {
    const at::Tensor y = rows_like(x, matrix.rows() * replicas);
    walk(matrix, replicas, x, [&]<typename T>(const Walked<T>& on) {
      launch_aggregate(on.matrix, on.columns, planes_of<T>(x), mutable_planes_of<T>(y), on.parts,
                       stream_of(x));
    });
    return y;
  }

  at::Tensor largest(const SparseMatrix& matrix, const at::Tensor& x) const {
    const at::Tensor best = rows_like(x, matrix.forward.rows() * matrix.replicas);
    walk(matrix.forward, matrix.replicas, x, [&]<typename T>(const Walked<T>& on) {
      launch_max(on.matrix, on.columns, planes_of<T>(x), mutable_planes_of<T>(best), on.parts,
                 stream_of(x));
    });
    return best;
  }

  at::Tensor largest_gradient(const SparseMatrix& matrix, const at::Tensor& x,
                              const at::Tensor& best, const at::Tensor& d_y) const {
    const at::Tensor share = rows_like(best), d_x = rows_like(x);
    walk(matrix.forward, matrix.replicas, x, [&]<typename T>(const Walked<T>& on) {
      launch_max_shares(on.matrix, on.columns, planes_of<T>(x), planes_of<T>(best),
                        planes_of<T>(d_y), mutable_planes_of<T>(share), on.parts, stream_of(x));
    });
    walk(matrix.transposed, matrix.replicas, x, [&]<typename T>(const Walked<T>& on) {
      launch_max_gradient(on.matrix, on.columns, planes_of<T>(x), planes_of<T>(best),
                          planes_of<T>(share), mutable_planes_of<T>(d_x), on.parts, stream_of(x));
    });
    return d_x;
  }

  const DeviceArrays arrays_;
  const Precision precision_;
};

}  // namespace

std::unique_ptr<const Backend> make_device_backend(DeviceArrays arrays, Precision precision) {
  return std::make_unique<const DeviceBackend>(std::move(arrays), precision);
}

}  // namespace tpudist
