#include <ATen/ATen.h>

#include <algorithm>
#include <vector>

#include "models/operators/cpu_backend.hpp"
#include "models/operators/product_loops.hpp"
#include "models/operators/row_tasks.hpp"

namespace tpudist {
namespace {

// So many products are added in the type of the rows before they go into a sum in double.
constexpr std::int64_t kAddedProducts = 128;

// The products of one neighbourhood of one member.
template <typename T>
void add_products(const Csr& matrix, std::int64_t replicas, std::int64_t of, const T* a, const T* b,
                  const ProductShape& shape, T* out) {
  const std::int64_t numbers = shape.numbers();
  std::vector<double> sum(static_cast<std::size_t>(numbers));
  std::vector<T> part(sum.size());
  const std::int64_t end = matrix.begin[of / replicas + 1];
  for (std::int64_t begin = matrix.begin[of / replicas]; begin < end; begin += kAddedProducts) {
    std::ranges::fill(part, T(0));
    for (std::int64_t e = begin; e < std::min(end, begin + kAddedProducts); ++e) {
      const std::int64_t row = matrix.source[e] * replicas + of % replicas;
      ProductLoops<T>::add(a + row * shape.heads * shape.a, b + row * shape.heads * shape.b,
                           static_cast<T>(matrix.weight_of(e)), shape.heads, shape.a, shape.b,
                           part.data());
    }
    for (std::int64_t i = 0; i < numbers; ++i) sum[i] += static_cast<double>(part[i]);
  }
  for (std::int64_t i = 0; i < numbers; ++i) out[i] = static_cast<T>(sum[i]);
}

// y = x times the products that entries(row, add) names by add(product, weight).
template <typename Entries>
at::Tensor multiply(const at::Tensor& x, const at::Tensor& s, const ProductShape& shape,
                    ThreadPool& pool, const Entries& entries) {
  at::Tensor y = make_rows(x.size(0), x.size(1), shape.heads * shape.b, x.options());
  for_row_blocks(pool, x.size(1), [&](std::int64_t first, std::int64_t count) {
    AT_DISPATCH_FLOATING_TYPES(x.scalar_type(), "apply_products", [&] {
      for (std::int64_t m = 0; m < x.size(0); ++m) {
        for (std::int64_t row = first; row < first + count; ++row) {
          const scalar_t* const in = plane<scalar_t>(x, m) + row * shape.heads * shape.a;
          scalar_t* const out = mutable_plane<scalar_t>(y, m) + row * shape.heads * shape.b;
          std::fill_n(out, shape.heads * shape.b, scalar_t(0));
          entries(row, [&](std::int64_t product, float weight) {
            ProductLoops<scalar_t>::apply(in, plane<scalar_t>(s, m) + product * shape.numbers(),
                                          static_cast<scalar_t>(weight), shape.heads, shape.a,
                                          shape.b, out);
          });
        }
      }
    });
  });
  return y;
}

}  // namespace

at::Tensor CpuBackend::sum_products(const Csr& matrix, std::int64_t replicas, const at::Tensor& a,
                                    const at::Tensor& b, const ProductShape& shape) const {
  const std::int64_t count = matrix.rows() * replicas;
  at::Tensor s = make_rows(a.size(0), count, shape.numbers(), a.options());
  pool_.parallel_for(a.size(0) * count, [&](std::int64_t task) {
    const std::int64_t m = task / count, of = task % count;
    AT_DISPATCH_FLOATING_TYPES(a.scalar_type(), "sum_products", [&] {
      add_products(matrix, replicas, of, plane<scalar_t>(a, m), plane<scalar_t>(b, m), shape,
                   mutable_plane<scalar_t>(s, m) + of * shape.numbers());
    });
  });
  return s;
}

at::Tensor CpuBackend::apply_products(const at::Tensor& x, const at::Tensor& s,
                                      const GatherView& index, const ProductShape& shape) const {
  return multiply(x, s, shape, pool_,
                  [&](std::int64_t row, const auto& add) { add(index.index[row], 1.0f); });
}

at::Tensor CpuBackend::apply_products(const at::Tensor& x, const at::Tensor& s, const Csr& matrix,
                                      std::int64_t replicas, const ProductShape& shape) const {
  return multiply(x, s, shape, pool_, [&](std::int64_t row, const auto& add) {
    const std::int64_t of = row / replicas;
    for (std::int64_t e = matrix.begin[of]; e < matrix.begin[of + 1]; ++e)
      add(matrix.source[e] * replicas + row % replicas, matrix.weight_of(e));
  });
}

}  // namespace tpudist
