#include "models/kernels/row_kernels.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "core/aligned.hpp"
#include "core/random.hpp"
#include "models/plans/csr.hpp"
#include "tests/models/plans/make_csr.hpp"

namespace tpudist {
namespace {

struct Matrix {
  Matrix(std::int64_t rows, std::int64_t width, std::uint64_t key)
      : rows(rows), stride((width + 15) / 16 * 16) {
    CounterRng rng(key);
    data.resize(rows * stride);
    for (float& x : data) x = static_cast<float>(rng.uniform(-1, 1));
  }
  Rows view() { return {data.data(), stride}; }
  float operator()(std::int64_t i, std::int64_t c) const { return data[i * stride + c]; }
  std::int64_t rows, stride;
  AlignedFloats data;
};

Csr random_csr(std::int64_t rows, std::int64_t columns, CounterRng& rng) {
  std::vector<test::CsrEntry> entries;
  for (std::int64_t i = 0; i < rows; ++i) {
    for (std::uint64_t e = rng.below(4); e > 0; --e) {
      entries.push_back({static_cast<std::int32_t>(i),
                         static_cast<std::int32_t>(rng.below(columns)),
                         static_cast<float>(rng.uniform(-2, 2))});
    }
  }
  return test::make_csr(rows, entries);
}

TEST(SpmmRows, EqualsTheNaiveProduct) {
  CounterRng rng(4);
  for (const std::int64_t width : {1, 7, 16, 33, 64}) {
    for (const std::int64_t replicas : {1, 3}) {
      Csr csr = random_csr(6, 9, rng);
      if (rng.below(3) == 0) csr.weight.clear();  // all 1
      const std::int64_t limit = 3 + rng.below(7);
      Matrix x(9 * replicas, width, 1), base(6 * replicas, width, 2), mask(6 * replicas, width, 3);
      for (const bool with_base : {false, true}) {
        for (const bool with_mask : {false, true}) {
          const std::int64_t first = 2, count = 6 * replicas - 3;
          Matrix y(count, width, 5);
          spmm_rows(csr, first, count, x.view(), width, y.view(),
                    {.replicas = replicas,
                     .sources = limit,
                     .base = with_base ? ConstRows(Rows{base.view().row(first), base.stride})
                                       : ConstRows{},
                     .mask = with_mask ? ConstRows(Rows{mask.view().row(first), mask.stride})
                                       : ConstRows{}});
          for (std::int64_t i = 0; i < count; ++i) {
            const std::int64_t row = (first + i) / replicas, replica = (first + i) % replicas;
            for (std::int64_t c = 0; c < width; ++c) {
              double expected = with_base ? base(first + i, c) : 0;
              for (std::int64_t e = csr.begin[row]; e < csr.begin[row + 1]; ++e) {
                if (csr.source[e] >= limit) continue;
                expected += static_cast<double>(csr.weight_of(e)) *
                            x(csr.source[e] * replicas + replica, c);
              }
              if (with_mask && mask(first + i, c) <= 0) expected = 0;
              ASSERT_NEAR(y(i, c), expected, 1e-6);
            }
          }
        }
      }
    }
  }
}

TEST(SpmmRows, AddsInPlace) {
  const Csr csr = test::make_csr(2, std::vector<test::CsrEntry>{{0, 1, 2}, {1, 0, 3}});
  AlignedFloats x = {1, 10}, y = {5, 6};
  spmm_rows(csr, 0, 2, {x.data(), 1}, 1, {y.data(), 1}, {.base = {y.data(), 1}});
  EXPECT_EQ(y, (AlignedFloats{25, 9}));
}

// Sources that are as large as others in half of the channels, parallel edges, rows of none.
TEST(SpmmMaxRows, EqualsNaiveMaximaAndSharesTheirGradient) {
  CounterRng rng(11);
  for (const std::int64_t width : {1, 16, 300}) {
    for (const std::int64_t replicas : {1, 3}) {
      constexpr std::int64_t kGroups = 6, kSources = 9;
      std::vector<test::CsrEntry> entries;
      for (std::int32_t i = 0; i < kGroups; ++i) {
        for (std::uint64_t e = i == 2 ? 0 : rng.below(5); e > 0; --e)
          entries.push_back({i, static_cast<std::int32_t>(rng.below(kSources)), 1});
      }
      const Csr in = test::make_csr(kGroups, entries), out = transpose(in, kSources);
      Matrix x(kSources * replicas, width, 1), gradient(kGroups * replicas, width, 2);
      for (std::int64_t i = 0; i < x.rows; ++i) {
        for (std::int64_t c = 0; c < width; c += 2) x.view().row(i)[c] = i % 2 ? 0.5f : 0.25f;
      }
      Matrix best(kGroups * replicas, width, 3), share = gradient;
      spmm_max_rows(in, 0, best.rows, x.view(), width, best.view(), replicas);
      spmm_max_shares(in, 0, share.rows, x.view(), best.view(), width, share.view(), replicas);
      const std::int64_t limit = kGroups - 1, first = 2, count = x.rows - 3;
      Matrix base(x.rows, width, 4), mask(x.rows, width, 5), y(count, width, 6);
      const auto from = [&](Matrix& m) { return Rows{m.view().row(first), m.stride}; };
      spmm_max_backward_rows(
          out, first, count, from(x), best.view(), share.view(), width, y.view(),
          {.replicas = replicas, .sources = limit, .base = from(base), .mask = from(mask)});
      for (std::int64_t c = 0; c < width; ++c) {
        std::vector<double> expected;
        for (std::int64_t i = 0; i < x.rows; ++i) expected.push_back(base(i, c));
        for (std::int64_t g = 0; g < best.rows; ++g) {
          const std::int64_t row = g / replicas, replica = g % replicas;
          const auto source = [&](std::int64_t e) { return in.source[e] * replicas + replica; };
          const std::int64_t begin = in.begin[row], end = in.begin[row + 1];
          float largest = begin == end ? 0 : x(source(begin), c);
          for (std::int64_t e = begin; e < end; ++e) largest = std::max(largest, x(source(e), c));
          ASSERT_EQ(best(g, c), largest);
          double ties = 0;
          for (std::int64_t e = begin; e < end; ++e)
            ties += x(source(e), c) == largest ? in.weight_of(e) : 0;
          for (std::int64_t e = begin; row < limit && e < end; ++e) {
            if (x(source(e), c) != largest) continue;
            expected[source(e)] += in.weight_of(e) / ties * gradient(g, c);
          }
        }
        for (std::int64_t i = 0; i < count; ++i) {
          const double value = mask(first + i, c) > 0 ? expected[first + i] : 0;
          ASSERT_NEAR(y(i, c), value, 1e-6);
        }
      }
    }
  }
}

TEST(SpmmMaxRows, KeepsANan) {
  const Csr csr = test::make_csr(1, std::vector<test::CsrEntry>{{0, 0, 1}, {0, 1, 1}, {0, 2, 1}});
  for (int place = 0; place < 3; ++place) {
    AlignedFloats x = {1, 3, 2}, y = {0};
    x[place] = std::nanf("");
    spmm_max_rows(csr, 0, 1, {x.data(), 1}, 1, {y.data(), 1});
    EXPECT_TRUE(std::isnan(y[0]));
  }
}

TEST(CombineRows, AddsWhatEachRowTakes) {
  const std::int32_t self[] = {2, 0}, near[] = {1, 1}, far[] = {0, 2};
  const std::int32_t* const neighbourhood[] = {near, far};
  for (const std::int64_t width : {1, 16, 19}) {
    Matrix own(3, width, 1), before(3, width, 2), a(2, width, 3), b(3, width, 4), bias(1, width, 5);
    const ConstRows products[] = {a.view(), b.view()};
    for (const std::size_t sets : {0, 1, 2}) {
      for (const bool residual : {false, true}) {
        Matrix y(2, width, 6);
        combine_rows(
            {self, own.view(), residual ? ConstRows(before.view()) : ConstRows{}, bias.data.data(),
             std::span(neighbourhood).first(sets), std::span(products).first(sets)},
            2, width, residual, y.view());
        for (std::int64_t i = 0; i < 2; ++i) {
          for (std::int64_t c = 0; c < width; ++c) {
            double expected = own(self[i], c) + bias(0, c);
            if (sets > 0) expected += a(near[i], c);
            if (sets > 1) expected += b(far[i], c);
            if (residual) expected = std::max(0.0, expected + before(self[i], c));
            ASSERT_NEAR(y(i, c), expected, 1e-6);
          }
        }
      }
    }
  }
}

TEST(RowKernels, EqualNaiveLoops) {
  constexpr std::int64_t kRows = 5;
  for (const std::int64_t width : {1, 15, 16, 37}) {
    Matrix y(kRows, width, 1), x(kRows, width, 2), z(kRows, width, 3), bias(1, width, 4);
    const Matrix y0 = y, z0 = z;
    const float scale[kRows] = {1, -2, 0.5f, 3, 0};
    bias_relu_rows(y.view(), kRows, width, bias.data.data(), x.view(), true);
    relu_backward_rows(z.view(), kRows, width, x.view());
    AlignedFloats sums(width, 1.0f), scaled(width, 1.0f);
    add_column_sums(x.view(), kRows, width, sums.data());
    add_scaled_rows(scale, x.view(), kRows, width, scaled.data());
    Matrix outer(kRows, width, 6);
    outer_rows(scale, kRows, width, bias.data.data(), outer.view());
    double dots[kRows];
    dot_rows(x.view(), kRows, width, bias.data.data(), dots);
    for (std::int64_t c = 0; c < width; ++c) {
      double sum = 1, scaled_sum = 1;
      for (std::int64_t i = 0; i < kRows; ++i) {
        ASSERT_EQ(y(i, c), std::max(0.0f, y0(i, c) + bias(0, c) + x(i, c)));
        ASSERT_EQ(z(i, c), x(i, c) > 0 ? z0(i, c) : 0);
        ASSERT_EQ(outer(i, c), scale[i] * bias(0, c));
        sum += x(i, c);
        scaled_sum += scale[i] * x(i, c);
      }
      ASSERT_NEAR(sums[c], sum, 1e-5);
      ASSERT_NEAR(scaled[c], scaled_sum, 1e-5);
    }
    for (std::int64_t i = 0; i < kRows; ++i) {
      double expected = 0;
      for (std::int64_t c = 0; c < width; ++c)
        expected += static_cast<double>(x(i, c)) * bias(0, c);
      ASSERT_NEAR(dots[i], expected, 1e-12);
    }
  }
}

TEST(RowKernels, KeepNotANumber) {
  AlignedFloats y = {std::nanf(""), -1}, bias = {0, 0};
  bias_relu_rows({y.data(), 2}, 1, 2, bias.data(), {}, true);
  EXPECT_TRUE(std::isnan(y[0]));
  EXPECT_EQ(y[1], 0);
}

TEST(RowKernels, SumPartsAddsInOrder) {
  const std::int64_t length = 2500;
  Matrix parts(3, length, 1);
  AlignedFloats sum(length);
  sum_parts(parts.data.data(), parts.stride, 3, length, sum.data());
  for (std::int64_t i = 0; i < length; ++i)
    ASSERT_EQ(sum[i], (parts(0, i) + parts(1, i)) + parts(2, i));
}

}  // namespace
}  // namespace tpudist
