#include <ATen/ATen.h>

#include <algorithm>
#include <utility>

#include "models/kernels/cpu_blocks.hpp"
#include "models/kernels/gemm.hpp"
#include "models/operators/cpu_backend.hpp"

namespace tpudist {
namespace {

// A matrix inside a tensor whose rows are dense: element (i, j) is at `offset + i * stride + j`.
struct Matrix {
  const at::Tensor& tensor;
  std::int64_t offset, stride;
  Transpose transpose = Transpose::no;
};

// c[m, n] = a[m, k] b[k, n] + beta * c; c is row by row at `c_offset`.
// `precision`: of float32 operands.
void multiply(Precision precision, std::int64_t m, std::int64_t n, std::int64_t k, const Matrix& a,
              const Matrix& b, double beta, at::Tensor& c, std::int64_t c_offset) {
  if (c.scalar_type() == at::kFloat) {
    gemm(precision, m, n, k, {a.tensor.const_data_ptr<float>() + a.offset, a.stride, a.transpose},
         {b.tensor.const_data_ptr<float>() + b.offset, b.stride, b.transpose},
         static_cast<float>(beta), c.mutable_data_ptr<float>() + c_offset, n);
    return;
  }
  // Products in double are few: those of heads.
  const auto steps = [](const Matrix& matrix) {
    const bool turned = matrix.transpose == Transpose::yes;
    return std::pair(turned ? 1 : matrix.stride, turned ? matrix.stride : 1);
  };
  const auto [a_down, a_along] = steps(a);
  const auto [b_down, b_along] = steps(b);
  const double* const left = a.tensor.const_data_ptr<double>() + a.offset;
  const double* const right = b.tensor.const_data_ptr<double>() + b.offset;
  double* const out = c.mutable_data_ptr<double>() + c_offset;
  for (std::int64_t i = 0; i < m; ++i) {
    double* const row = out + i * n;
    for (std::int64_t j = 0; j < n; ++j) row[j] = beta == 0 ? 0 : beta * row[j];
    for (std::int64_t l = 0; l < k; ++l) {
      const double scale = left[i * a_down + l * a_along];
      for (std::int64_t j = 0; j < n; ++j) row[j] += scale * right[l * b_down + j * b_along];
    }
  }
}

// Adds the rows of y to `sums`, both [columns], in order.
template <typename T>
void add_rows_to(const T* y, std::int64_t rows, std::int64_t columns, T* sums) {
  for (std::int64_t i = 0; i < rows; ++i) {
    for (std::int64_t c = 0; c < columns; ++c) sums[c] += y[i * columns + c];
  }
}

// Makes each row of y `value`.
template <typename T>
void set_rows(const T* value, std::int64_t columns, std::int64_t rows, T* y) {
  for (std::int64_t i = 0; i < rows; ++i) std::copy_n(value, columns, y + i * columns);
}

// The sizes of one call.
struct Sizes {
  Sizes(const at::Tensor& x, const at::Tensor& weight)
      : rows(x.size(1)), members(x.size(0)), in(x.size(2)), out(weight.size(2)) {}
  std::int64_t rows, members, in, out;
};

at::Tensor gradient_of_rows(const at::Tensor& d_y, const at::Tensor& x, const at::Tensor& weight,
                            Precision precision, ThreadPool& pool) {
  const Sizes n(x, weight);
  at::Tensor d_x = rows_like(x);
  for_row_blocks(pool, n.rows, [&](std::int64_t first, std::int64_t count) {
    for (std::int64_t m = 0; m < n.members; ++m) {
      multiply(precision, count, n.in, n.out, {d_y, m * d_y.stride(0) + first * n.out, n.out},
               {weight, m * weight.stride(0), n.out, Transpose::yes}, 0, d_x,
               m * d_x.stride(0) + first * n.in);
    }
  });
  return d_x;
}

// Partial sums [M, chunks, I, O] and [M, chunks, O], added up over the chunks in order.
void gradients_of_parameters(const at::Tensor& d_y, const at::Tensor& x, const at::Tensor& weight,
                             Precision precision, ThreadPool& pool, at::Tensor& d_weight,
                             at::Tensor& d_bias) {
  const Sizes n(x, weight);
  const std::int64_t step = chunk_rows(n.rows), chunks = (n.rows + step - 1) / step;
  at::Tensor weights = make_rows(n.members, chunks * n.in, n.out, x.options()),
             biases = at::zeros({n.members, chunks, n.out}, x.options());
  pool.parallel_for(chunks * n.members, [&](std::int64_t task) {
    const std::int64_t m = task / chunks, chunk = task % chunks;
    const std::int64_t first = chunk * step, count = std::min(step, n.rows - first);
    const std::int64_t place = m * d_y.stride(0) + first * n.out;
    multiply(precision, n.in, n.out, count,
             {x, m * x.stride(0) + first * n.in, n.in, Transpose::yes}, {d_y, place, n.out}, 0,
             weights, m * weights.stride(0) + chunk * n.in * n.out);
    AT_DISPATCH_FLOATING_TYPES(x.scalar_type(), "linear_rows", [&] {
      add_rows_to(d_y.const_data_ptr<scalar_t>() + place, count, n.out,
                  biases.mutable_data_ptr<scalar_t>() + task * n.out);
    });
  });
  d_weight = weights.narrow(1, 0, n.in);
  d_bias = biases.select(1, 0);
  for_row_blocks(pool, n.in, [&](std::int64_t first, std::int64_t count) {
    AT_DISPATCH_FLOATING_TYPES(x.scalar_type(), "linear_rows", [&] {
      for (std::int64_t m = 0; m < n.members; ++m) {
        scalar_t* const sum = mutable_plane<scalar_t>(weights, m) + first * n.out;
        for (std::int64_t chunk = 1; chunk < chunks; ++chunk) {
          const scalar_t* const part = sum + chunk * n.in * n.out;
          for (std::int64_t i = 0; i < count * n.out; ++i) sum[i] += part[i];
        }
      }
    });
  });
  for (std::int64_t chunk = 1; chunk < chunks; ++chunk) d_bias.add_(biases.select(1, chunk));
}

}  // namespace

at::Tensor CpuBackend::linear(const at::Tensor& x, const at::Tensor& weight,
                              const at::Tensor& bias) const {
  const Sizes n(x, weight);
  at::Tensor y = make_rows(n.members, n.rows, n.out, x.options());
  for_row_blocks(pool_, n.rows, [&](std::int64_t first, std::int64_t count) {
    for (std::int64_t m = 0; m < n.members; ++m) {
      const std::int64_t begin = m * y.stride(0) + first * n.out;
      if (bias.defined()) {
        AT_DISPATCH_FLOATING_TYPES(y.scalar_type(), "linear_rows", [&] {
          set_rows(plane<scalar_t>(bias, m), n.out, count, y.mutable_data_ptr<scalar_t>() + begin);
        });
      }
      multiply(precision_, count, n.out, n.in, {x, m * x.stride(0) + first * n.in, n.in},
               {weight, m * weight.stride(0), n.out}, bias.defined() ? 1 : 0, y, begin);
    }
  });
  return y;
}

Backend::Gradients CpuBackend::linear_gradient(const at::Tensor& x, const at::Tensor& weight,
                                               const at::Tensor& d_y, bool of_x,
                                               bool of_bias) const {
  Gradients gradients;
  if (of_x) gradients.x = gradient_of_rows(d_y, x, weight, precision_, pool_);
  gradients_of_parameters(d_y, x, weight, precision_, pool_, gradients.parameter, gradients.bias);
  if (!of_bias) gradients.bias = at::Tensor();
  return gradients;
}

at::Tensor rows_in_order(const at::Tensor& x) {
  at::Tensor sums = at::zeros({x.size(0), x.size(2)}, x.options());
  AT_DISPATCH_FLOATING_TYPES(x.scalar_type(), "sum_of_rows", [&] {
    for (std::int64_t m = 0; m < x.size(0); ++m)
      add_rows_to(plane<scalar_t>(x, m), x.size(1), x.size(2),
                  sums.mutable_data_ptr<scalar_t>() + m * x.size(2));
  });
  return sums;
}

void add_product(const at::Tensor& a, const at::Tensor& b, const at::Tensor& sum) {
  const auto matrix = [](const at::Tensor& x, std::int64_t batch) {
    const std::int64_t begin = x.dim() == 3 ? batch * x.stride(0) : 0;
    return x.stride(-1) == 1 ? Matrix{x, begin, x.stride(-2)}
                             : Matrix{x, begin, x.stride(-1), Transpose::yes};
  };
  const auto dense = [](const at::Tensor& x) {
    return x.stride(-1) == 1 || x.stride(-2) == 1 ? x : x.contiguous();
  };
  const at::Tensor left = dense(a), right = dense(b);
  const std::int64_t m = a.size(-2), k = a.size(-1), n = b.size(-1);
  at::Tensor to = sum;
  for (std::int64_t batch = 0; batch < (a.dim() == 3 ? a.size(0) : 1); ++batch)
    multiply(Precision::fp32, m, n, k, matrix(left, batch), matrix(right, batch), 1, to,
             sum.dim() == 3 ? batch * sum.stride(0) : 0);
}

at::Tensor product(const at::Tensor& a, const at::Tensor& b) {
  std::vector<std::int64_t> sizes = a.sizes().vec();
  sizes.back() = b.size(-1);
  const at::Tensor result = at::zeros(sizes, a.options());
  add_product(a, b, result);
  return result;
}

}  // namespace tpudist
