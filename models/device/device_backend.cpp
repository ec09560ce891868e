#include "models/device/device_backend.hpp"

#include <ATen/ATen.h>
#include <ATen/record_function.h>

#include <algorithm>

#include "core/error.hpp"
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

// The largest weight gradient of a leaf for which the kernel for all leaves was faster on an H200
// than cuBLAS's one call for each, in products.
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
    if (bias.defined()) of_members(y).add_(one_of_member(bias).unsqueeze(1));
    return y;
  }
  Gradients linear_gradient(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& d_y,
                            bool of_x, bool of_bias) const override {
    Gradients gradients;
    const at::Tensor right = operand(d_y);
    if (of_x) {
      gradients.x = rows_like(x);
      multiply_all(right, operand(weight), true, gradients.x);
    }
    const Leaves leaves = leaves_of(x, weight.size(0));
    const std::int64_t in = x.size(2), out = d_y.size(2);
    const at::Tensor y = make_rows(weight.size(0), in + (of_bias ? 1 : 0), out, x.options());
    gradients.parameter = y.narrow(1, 0, in);
    if (of_bias) gradients.bias = y.select(1, in);
    if (x.scalar_type() == at::kDouble) {
      multiply_doubles(operand(x).transpose(1, 2), right, gradients.parameter, leaves.runs);
      if (of_bias) gradients.bias = sum_of_rows(d_y);
      return gradients;
    }
    const bool by_kernel = precision_ == Precision::fp32;
    if (by_kernel) {
      WeightGradientSizes sizes{0, in, out, of_bias};
      std::int64_t chunks = 0;
      for (const RowRun& run : leaves.of_plane) {
        chunks = std::max(chunks, WeightGradientSizes{run.count, in, out, of_bias}.chunks());
        sizes.rows = std::max(sizes.rows, run.count);
      }
      const at::Tensor parts =
          chunks == 1 ? at::Tensor() : make_rows(y.size(0), chunks, sizes.numbers(), x.options());
      launch_weight_gradient(sizes, chunks, y.size(0), leaves.runs, planes_of<float>(x),
                             planes_of<float>(d_y), mutable_planes_of<float>(y),
                             mutable_planes_of<float>(parts), stream_of(x));
    } else if (of_bias) {
      gradients.bias = sum_of_rows(d_y);
    }
    const at::Tensor left = operand(x);
    for (std::int64_t leaf = 0; leaf < y.size(0); ++leaf) {
      const std::int64_t rows = leaves.run(leaf).count;
      if (by_kernel && rows * in * out <= kMostProducts) continue;
      at::Tensor to = gradients.parameter[leaf];
      if (rows == 0) {
        to.zero_();
      } else {
        multiply(leaves.rows(left, leaf)[0].t(), leaves.rows(right, leaf)[0], to);
      }
    }
    return gradients;
  }

  at::Tensor of_rows(const at::Tensor& parameter, std::int64_t rows) const override {
    if (!units()) return parameter.unsqueeze(1).expand({-1, rows, -1});
    const UnitRows& kind = units()->of(rows);
    const std::int64_t runs = std::ssize(kind.runs);
    return sum_of_gathered(
        {as_planes(parameter.reshape({parameter.size(0) / runs, runs, parameter.size(1)}))},
        {{kind.run_of_row, kind.rows_of_run}}, rows);
  }
  at::Tensor sum_of_rows(const at::Tensor& x) const override {
    if (!units()) return summed_rows(x);
    const at::Tensor sums = multiply(units()->of(x.size(1)).rows_of_run, 1, x);
    return sums.reshape({sums.size(0) * sums.size(1), sums.size(2)});
  }

  // LibTorch may round a number by where it lies, which joined plans take care of.
  bool maps_all_members() const override { return units() != nullptr; }
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
      // Members that have a block each have row keys of their own.
      const std::int64_t blocks = units() ? units()->blocks : 1, rows = x.size(1) / blocks;
      const std::uint64_t* const keys = arrays_.find(draw.row_keys);
      Columns columns = columns_of(x);
      for (std::int64_t b = 0; b < blocks; ++b) {
        const std::int64_t at = b * rows * x.size(2);
        launch_drop(draw.dropped == Dropped::rows, rows, columns, draw.rate,
                    draw.member_keys.data() + b, draw.layer, keys + b * rows,
                    Planes<const scalar_t>(x.const_data_ptr<scalar_t>() + at, x.stride(0)),
                    Planes<scalar_t>(y.mutable_data_ptr<scalar_t>() + at, y.stride(0)),
                    stream_of(x));
      }
    });
    return y;
  }

  Result normalise(const RowGroups& groups, const at::Tensor& x, const at::Tensor& shift,
                   double eps) const override {
    return normalise_by_kernels(arrays_.find(groups), x, of_planes(shift, x), eps);
  }
  Gradients normalise_gradient(const RowGroups& groups, const at::Tensor& x,
                               const at::Tensor& shift, const at::Tensor& kept,
                               const at::Tensor& d_y) const override {
    Gradients gradients =
        normalise_gradient_by_kernels(arrays_.find(groups), x, of_planes(shift, x), kept, d_y);
    if (shift.defined())
      gradients.parameter = sum_of_rows(as_planes(gradients.parameter)).to(shift.scalar_type());
    return gradients;
  }
  Result softmax_gate(const RowGroups& groups, const at::Tensor& x,
                      const at::Tensor& temperature) const override {
    return softmax_gate_by_kernels(arrays_.find(groups), x, of_planes(temperature, x));
  }
  Gradients softmax_gate_gradient(const RowGroups& groups, const at::Tensor& x,
                                  const at::Tensor& temperature, const at::Tensor& kept,
                                  const at::Tensor& d_y) const override {
    Gradients gradients = softmax_gate_gradient_by_kernels(arrays_.find(groups), x,
                                                           of_planes(temperature, x), kept, d_y);
    const at::Tensor sums = summed_rows(as_planes(sum_of_rows(gradients.parameter).unsqueeze(2)));
    gradients.parameter = sums.view_as(temperature).to(temperature.scalar_type());
    return gradients;
  }
  at::Tensor attend(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                    const NodeAttention& attention, std::int64_t heads) const override {
    return multiply(attention.after.of_plan, 1, attend_padded(q, k, v, attention, heads));
  }
  std::array<at::Tensor, 3> attend_gradient(const at::Tensor& q, const at::Tensor& k,
                                            const at::Tensor& v, const at::Tensor& y,
                                            const at::Tensor& d_y, const NodeAttention& attention,
                                            std::int64_t heads) const override {
    return of_plan(attend_padded_gradient(q, k, v, y, d_y, attention, heads), attention);
  }
  std::array<at::Tensor, 3> attend_linearly(const at::Tensor& q, const at::Tensor& k,
                                            const at::Tensor& v, const NodeAttention& attention,
                                            std::int64_t heads) const override {
    return {
        multiply(attention.after.of_plan, 1, attend_linearly_padded(q, k, v, attention, heads))};
  }
  std::array<at::Tensor, 3> attend_linearly_gradient(const at::Tensor& q, const at::Tensor& k,
                                                     const at::Tensor& v,
                                                     const std::array<at::Tensor, 3>& result,
                                                     const at::Tensor& d_y,
                                                     const NodeAttention& attention,
                                                     std::int64_t heads) const override {
    return of_plan(attend_linearly_padded_gradient(q, k, v, result[0], d_y, attention, heads),
                   attention);
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

  // Gradients of rows that groups take, added up for each row of the plan.
  std::array<at::Tensor, 3> of_plan(const std::array<at::Tensor, 3>& d,
                                    const NodeAttention& attention) const {
    return {multiply(attention.after.of_plan, 1, d[0]), multiply(attention.before.of_plan, 1, d[1]),
            multiply(attention.before.of_plan, 1, d[2])};
  }

  const JoinedUnits* units() const { return arrays_.units(); }

  // The rows whose gradients of parameters are sums of their own: those of a unit for one member.
  struct Leaves {
    std::vector<RowRun> of_plane;
    RowRuns runs;

    const RowRun& run(std::int64_t leaf) const {
      return of_plane[static_cast<std::size_t>(leaf) % of_plane.size()];
    }
    at::Tensor rows(const at::Tensor& x, std::int64_t leaf) const {
      return x.narrow(0, leaf / std::ssize(of_plane), 1)
          .narrow(1, run(leaf).begin, run(leaf).count);
    }
  };
  Leaves leaves_of(const at::Tensor& x, std::int64_t leaves) const {
    if (!units()) {
      if (leaves != x.size(0))
        throw Error(ErrorKind::failed, "a product has parameters of other members");
      return {{{0, x.size(1)}}, {nullptr, 1, kMostProducts}};
    }
    const std::vector<RowRun>& runs = units()->of(x.size(1)).runs;
    return {runs, {arrays_.find(runs), std::ssize(runs), kMostProducts}};
  }

  // Rows [M, rows, C] or [1, M * rows, C] as the former.
  at::Tensor of_members(const at::Tensor& x) const {
    const std::int64_t blocks = units() ? units()->blocks : 1;
    return blocks == 1 ? x : x.view({blocks, x.size(1) / blocks, x.size(2)});
  }
  // Parameters [M * slots, ...] as [planes of x, ...], those of a plane side by side.
  static at::Tensor of_planes(const at::Tensor& parameter, const at::Tensor& x) {
    return parameter.defined() ? parameter.contiguous().view({x.size(0), -1}) : parameter;
  }
  // The first of each member's equal parameters, [M, ...].
  at::Tensor one_of_member(const at::Tensor& parameter) const {
    const std::int64_t slots = units() ? units()->slots : 1;
    return slots == 1 ? parameter : parameter.unflatten(0, {-1, slots}).select(1, 0);
  }

  // y = x W (or x W^T) of operands for each member; in one call if that is known not to change a
  // row's bits, else one for each leaf.
  void multiply_all(const at::Tensor& x, const at::Tensor& weight, bool transposed,
                    const at::Tensor& y) const {
    const at::Tensor own = one_of_member(weight);
    if (x.scalar_type() == at::kDouble) {
      multiply_doubles(of_members(x), transposed ? own.transpose(1, 2) : own, of_members(y));
      return;
    }
    if (multiply_members(of_members(x), own, transposed, precision_ == Precision::tf32,
                         of_members(y)))
      return;
    RECORD_FUNCTION("tpudist::products", {});
    if (units()) y.zero_();  // no number of padding may be left undefined
    const Leaves leaves = leaves_of(x, weight.size(0));
    for (std::int64_t leaf = 0; leaf < weight.size(0); ++leaf) {
      if (leaves.run(leaf).count == 0) continue;
      multiply(leaves.rows(x, leaf)[0], transposed ? weight[leaf].t() : weight[leaf],
               leaves.rows(y, leaf)[0]);
    }
  }

  static void multiply_doubles(const at::Tensor& a, const at::Tensor& b, const at::Tensor& y,
                               const RowRuns& runs = {}) {
    const auto strided = [](const at::Tensor& x) {
      return StridedPlanes{planes_of<double>(x), x.stride(1), x.stride(2)};
    };
    launch_double_product(a.size(1), a.size(2), columns_of(y), strided(a), strided(b),
                          mutable_planes_of<double>(y), stream_of(y), runs);
  }

  // y = a b of operands, with sums in the type of y. A library's bits may depend on where matrices
  // begin, so each begins at a boundary.
  void multiply(const at::Tensor& a, const at::Tensor& b, at::Tensor y) const {
    const auto at_boundary = [](const at::Tensor& x) {
      const auto bytes = x.storage_offset() * static_cast<std::int64_t>(x.element_size());
      return bytes % kPlaneBytes == 0 ? x : x.clone();
    };
    const at::Tensor left = at_boundary(a), right = at_boundary(b);
    if (a.scalar_type() == at::kBFloat16) {
      y.copy_(at::mm(left, right, y.scalar_type()));
      return;
    }
    at::Tensor to = at_boundary(y);
    if (precision_ != Precision::tf32 || !multiply_in_tf32(left, right, to))
      at::mm_out(to, left, right);
    if (!to.is_same(y)) y.copy_(to);
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
