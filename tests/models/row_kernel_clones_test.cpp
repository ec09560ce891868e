#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cstdint>
#include <vector>

#include "core/aligned.hpp"
#include "core/random.hpp"
#include "models/kernels/row_kernels.hpp"
#include "models/plans/csr.hpp"
#include "tests/models/plans/make_csr.hpp"

// The library compiles every loop once for each vector width and takes the widest one that the CPU
// has. Here each width is compiled once more under a name of its own, so that one CPU can run them
// all and the bits can be compared. The narrowest one has no fused multiply-add, so its bits are
// those of plain float32 arithmetic.
#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__)

#define TPUDIST_ROW_TYPES       \
  using ::tpudist::ConstRows;   \
  using ::tpudist::Csr;         \
  using ::tpudist::Precision;   \
  using ::tpudist::SpmmOptions; \
  using ::tpudist::Rows;        \
  using ::tpudist::CombineTerms;

namespace tpudist_sse2 {
TPUDIST_ROW_TYPES
}
namespace tpudist_avx2 {
TPUDIST_ROW_TYPES
}
namespace tpudist_avx512 {
TPUDIST_ROW_TYPES
}

#define tpudist tpudist_sse2
#define TPUDIST_VECTORISED __attribute__((optimize("O3")))
#include "models/kernels/row_kernels.cpp"
#undef tpudist
#undef TPUDIST_VECTORISED

#define tpudist tpudist_avx2
#define TPUDIST_VECTORISED __attribute__((target("avx2"), optimize("O3")))
#include "models/kernels/row_kernels.cpp"
#undef tpudist
#undef TPUDIST_VECTORISED

#define tpudist tpudist_avx512
#define TPUDIST_VECTORISED __attribute__((target("avx512f"), optimize("O3")))
#include "models/kernels/row_kernels.cpp"
#undef tpudist
#undef TPUDIST_VECTORISED

namespace tpudist {
namespace {

// One version of the kernels that do arithmetic.
struct Kernels {
  decltype(&tpudist::spmm_rows) spmm_rows;
  decltype(&tpudist::spmm_max_rows) spmm_max_rows;
  decltype(&tpudist::spmm_max_shares) spmm_max_shares;
  decltype(&tpudist::spmm_max_backward_rows) spmm_max_backward_rows;
  decltype(&tpudist::combine_rows) combine_rows;
  decltype(&tpudist::round_rows) round_rows;
  decltype(&tpudist::add_rows) add_rows;
  decltype(&tpudist::bias_relu_rows) bias_relu_rows;
  decltype(&tpudist::add_column_sums) add_column_sums;
  decltype(&tpudist::outer_rows) outer_rows;
  decltype(&tpudist::add_scaled_rows) add_scaled_rows;
  decltype(&tpudist::dot_rows) dot_rows;
  decltype(&tpudist::sum_parts) sum_parts;
};

#define TPUDIST_KERNELS_OF(space)                                                              \
  Kernels {                                                                                    \
    &space::spmm_rows, &space::spmm_max_rows, &space::spmm_max_shares,                         \
        &space::spmm_max_backward_rows, &space::combine_rows, &space::round_rows,              \
        &space::add_rows, &space::bias_relu_rows, &space::add_column_sums, &space::outer_rows, \
        &space::add_scaled_rows, &space::dot_rows, &space::sum_parts                           \
  }

constexpr std::int64_t kRows = 12;

// Rows of random numbers whose products and sums need rounding.
class Matrix {
 public:
  Matrix(std::int64_t rows, std::int64_t width, std::uint64_t key)
      : rows_(rows), stride_((width + 15) / 16 * 16), data_(rows * stride_) {
    CounterRng rng(key);
    for (float& x : data_) x = static_cast<float>(rng.uniform(-1, 1));
  }
  Rows view() { return {data_.data(), stride_}; }
  std::int64_t rows() const { return rows_; }
  const AlignedFloats& data() const { return data_; }

 private:
  std::int64_t rows_, stride_;
  AlignedFloats data_;
};

Csr random_csr(std::uint64_t key) {
  CounterRng rng(key);
  std::vector<test::CsrEntry> entries;
  for (std::int32_t i = 0; i < kRows; ++i) {
    for (std::uint64_t e = 1 + rng.below(5); e > 0; --e) {
      entries.push_back({i, static_cast<std::int32_t>(rng.below(kRows)),
                         static_cast<float>(rng.uniform(0.1, 2))});
    }
  }
  return test::make_csr(kRows, entries);
}

// The bits of everything that the kernels write, in a fixed order.
class Bits {
 public:
  void add(const AlignedFloats& values) {
    for (const float x : values) bits_.push_back(std::bit_cast<std::uint32_t>(x));
  }
  void add(double value) { bits_.push_back(std::bit_cast<std::uint64_t>(value)); }
  bool operator==(const Bits&) const = default;

 private:
  std::vector<std::uint64_t> bits_;
};

void run_sums(const Kernels& kernels, std::int64_t width, Bits& bits) {
  const Csr csr = random_csr(1);
  Matrix x(kRows, width, 2), base(kRows, width, 3), mask(kRows, width, 4), y(kRows, width, 5);
  kernels.spmm_rows(csr, 0, kRows, x.view(), width, y.view(), {});
  bits.add(y.data());
  kernels.spmm_rows(csr, 0, kRows, x.view(), width, y.view(),
                    {.sources = kRows - 2, .base = base.view(), .mask = mask.view()});
  bits.add(y.data());
  kernels.add_rows(x.view(), kRows, width, y.view());
  kernels.bias_relu_rows(y.view(), kRows, width, base.view().row(0), x.view(), true);
  bits.add(y.data());
  AlignedFloats sums(static_cast<std::size_t>(width), 0.3f);
  kernels.add_column_sums(x.view(), kRows, width, sums.data());
  kernels.add_scaled_rows(base.view().row(0), x.view(), std::min(kRows, width), width, sums.data());
  bits.add(sums);
  kernels.outer_rows(base.view().row(0), std::min(kRows, width), width, x.view().row(0), y.view());
  bits.add(y.data());
  double dots[kRows];
  kernels.dot_rows(x.view(), kRows, width, base.view().row(1), dots);
  for (const double dot : dots) bits.add(dot);
  for (const Precision precision : {Precision::tf32, Precision::bf16}) {
    kernels.round_rows(precision, x.view(), kRows, width, y.view());
    bits.add(y.data());
  }
  kernels.sum_parts(x.view().data, x.view().stride, kRows, width, y.view().data);
  bits.add(y.data());
}

void run_maxima(const Kernels& kernels, std::int64_t width, Bits& bits) {
  const Csr in = random_csr(6), out = transpose(in, kRows);
  Matrix x(kRows, width, 7), best(kRows, width, 8), share(kRows, width, 9), y(kRows, width, 10);
  kernels.spmm_max_rows(in, 0, kRows, x.view(), width, best.view(), 1);
  kernels.spmm_max_shares(in, 0, kRows, x.view(), best.view(), width, share.view(), 1);
  kernels.spmm_max_backward_rows(out, 0, kRows, x.view(), best.view(), share.view(), width,
                                 y.view(), {.base = x.view()});
  bits.add(best.data());
  bits.add(share.data());
  bits.add(y.data());
}

void run_combination(const Kernels& kernels, std::int64_t width, Bits& bits) {
  const std::int32_t self[] = {2, 0, 1}, near[] = {1, 1, 0}, far[] = {0, 2, 2};
  const std::int32_t* const neighbourhood[] = {near, far};
  Matrix own(3, width, 11), before(3, width, 12), a(2, width, 13), b(3, width, 14);
  Matrix bias(1, width, 15), y(3, width, 16);
  const ConstRows products[] = {a.view(), b.view()};
  kernels.combine_rows({self, own.view(), before.view(), bias.view().data, neighbourhood, products},
                       3, width, true, y.view());
  bits.add(y.data());
}

Bits run_all(const Kernels& kernels) {
  Bits bits;
  for (const std::int64_t width : {1, 7, 16, 33, 64, 300}) {
    run_sums(kernels, width, bits);
    run_maxima(kernels, width, bits);
    run_combination(kernels, width, bits);
  }
  return bits;
}

TEST(RowKernelClones, TheChosenOneHasTheBitsOfPlainArithmetic) {
  EXPECT_TRUE(run_all(TPUDIST_KERNELS_OF(tpudist)) == run_all(TPUDIST_KERNELS_OF(tpudist_sse2)));
}

TEST(RowKernelClones, AllThatThisCpuRunsHaveTheSameBits) {
  const Bits plain = run_all(TPUDIST_KERNELS_OF(tpudist_sse2));
  if (__builtin_cpu_supports("avx2")) {
    EXPECT_TRUE(run_all(TPUDIST_KERNELS_OF(tpudist_avx2)) == plain);
  }
  if (__builtin_cpu_supports("avx512f")) {
    EXPECT_TRUE(run_all(TPUDIST_KERNELS_OF(tpudist_avx512)) == plain);
  }
}

}  // namespace
}  // namespace tpudist

#endif
