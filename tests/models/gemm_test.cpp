#include "models/kernels/gemm.hpp"

#include <c10/util/BFloat16.h>
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>
#include <vector>

#include "core/random.hpp"
#include "models/kernels/row_kernels.hpp"

namespace tpudist {
namespace {

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr float kInfinity = std::numeric_limits<float>::infinity();

using Gemm = void (*)(std::int64_t m, std::int64_t n, std::int64_t k, MatrixView a, MatrixView b,
                      float beta, float* c, std::int64_t c_stride);

// An operand [rows, columns] amid NaNs that no product may read.
class Operand {
 public:
  Operand(std::int64_t rows, std::int64_t columns, Transpose transpose)
      : transpose_(transpose),
        stride_((transpose == Transpose::yes ? rows : columns) + 3),
        data_(1 + stride_ * (transpose == Transpose::yes ? columns : rows), kNan) {}

  float& at(std::int64_t i, std::int64_t j) {
    return data_[1 + (transpose_ == Transpose::yes ? j * stride_ + i : i * stride_ + j)];
  }
  MatrixView view() const { return {data_.data() + 1, stride_, transpose_}; }

 private:
  Transpose transpose_;
  std::int64_t stride_;
  std::vector<float> data_;
};

struct Problem {
  Problem(std::int64_t m, std::int64_t n, std::int64_t k, Transpose ta = Transpose::no,
          Transpose tb = Transpose::no)
      : m(m), n(n), k(k), a(m, k, ta), b(k, n, tb), c(m, n, Transpose::no) {}

  template <typename Draw>
  void fill(Draw draw) {
    for (std::int64_t i = 0; i < m; ++i) {
      for (std::int64_t l = 0; l < k; ++l) a.at(i, l) = draw();
    }
    for (std::int64_t l = 0; l < k; ++l) {
      for (std::int64_t j = 0; j < n; ++j) b.at(l, j) = draw();
    }
  }
  void run(Gemm gemm, float beta = 0) {
    const MatrixView out = c.view();
    gemm(m, n, k, a.view(), b.view(), beta, const_cast<float*>(out.data), out.stride);
  }

  std::int64_t m, n, k;
  Operand a, b, c;
};

template <Precision P>
void rounded_gemm(std::int64_t m, std::int64_t n, std::int64_t k, MatrixView a, MatrixView b,
                  float beta, float* c, std::int64_t c_stride) {
  gemm_of_rounded(P, m, n, k, a, b, beta, c, c_stride);
}

// A product of rounded operands.
struct RoundedGemm {
  Gemm gemm;
  Precision precision;
};

// Those that this CPU can run.
std::vector<RoundedGemm> rounded_kernels() {
  std::vector<RoundedGemm> all{{rounded_gemm<Precision::tf32>, Precision::tf32},
                               {rounded_gemm<Precision::bf16>, Precision::bf16}};
  if (has_bf16_dot_products()) all.push_back({gemm_of_pairs, Precision::bf16});
  return all;
}

std::vector<Gemm> float_kernels() {
  std::vector<Gemm> all{gemm_plain};
  if (has_avx2_products()) all.push_back(gemm_by_avx2);
  if (has_avx512_products()) all.push_back(gemm_by_avx512);
  return all;
}

std::vector<Gemm> all_kernels() {
  std::vector<Gemm> all;
  for (const auto& [gemm, precision] : rounded_kernels()) all.push_back(gemm);
  for (const Gemm gemm : float_kernels()) all.push_back(gemm);
  return all;
}

constexpr Transpose kForms[] = {Transpose::no, Transpose::yes};

// Small whole numbers: no rounding anywhere, so that every element is exact.
void expect_exact(Problem& problem, Gemm gemm) {
  CounterRng rng(problem.m * 10007 + problem.n * 101 + problem.k);
  problem.fill([&] { return static_cast<float>(rng.below(17)) - 8; });
  for (const float beta : {0.0f, 1.0f, -0.5f}) {
    for (std::int64_t i = 0; i < problem.m; ++i) {
      for (std::int64_t j = 0; j < problem.n; ++j) {
        problem.c.at(i, j) = beta == 0 ? kNan : static_cast<float>(i - 2 * j);  // NaN: not read
      }
    }
    problem.run(gemm, beta);
    for (std::int64_t i = 0; i < problem.m; ++i) {
      for (std::int64_t j = 0; j < problem.n; ++j) {
        float expected = beta == 0 ? 0 : beta * static_cast<float>(i - 2 * j);
        for (std::int64_t l = 0; l < problem.k; ++l)
          expected += problem.a.at(i, l) * problem.b.at(l, j);
        ASSERT_EQ(problem.c.at(i, j), expected) << i << " " << j << " beta " << beta;
      }
    }
  }
}

TEST(Gemm, IsExactOnWholeNumbersInAllShapesAndForms) {
  for (const Gemm gemm : all_kernels()) {
    for (const Transpose ta : kForms) {
      for (const Transpose tb : kForms) {
        for (const std::int64_t m : {1, 5, 6, 7, 12, 35}) {
          for (const std::int64_t n : {1, 15, 16, 33, 64, 65, 130}) {
            for (const std::int64_t k : {0, 1, 2, 31, 32, 33, 95}) {
              SCOPED_TRACE(::testing::Message() << m << " x " << n << " x " << k);
              Problem problem(m, n, k, ta, tb);
              ASSERT_NO_FATAL_FAILURE(expect_exact(problem, gemm));
            }
          }
        }
        for (const std::int64_t k : {255, 256, 257, 511, 512, 513, 1025, 1600}) {
          SCOPED_TRACE(::testing::Message() << "k " << k);
          Problem problem(13, 70, k, ta, tb);
          ASSERT_NO_FATAL_FAILURE(expect_exact(problem, gemm));
        }
      }
    }
  }
}

float to_bf16(float x) {
  return static_cast<float>(c10::BFloat16(x));
}

// By whole numbers of the last digit; not for subnormal numbers.
float to_tf32(float x) {
  int exponent = 0;
  const double mantissa = std::frexp(static_cast<double>(x), &exponent);
  return static_cast<float>(std::ldexp(std::round(mantissa * 2048), exponent - 11));
}

// An element of the product in double, and the size of what is added up.
struct ExactSum {
  double value = 0, size = 0;
};

ExactSum exact_sum(Problem& problem, std::int64_t i, std::int64_t j, float (*operand)(float)) {
  ExactSum sum;
  for (std::int64_t l = 0; l < problem.k; ++l) {
    const double term =
        static_cast<double>(operand(problem.a.at(i, l))) * operand(problem.b.at(l, j));
    sum.value += term;
    sum.size += std::abs(term);
  }
  return sum;
}

TEST(RoundedGemm, RoundsOperandsToNearestAndSumsInFloat32) {
  for (const auto& [gemm, precision] : rounded_kernels()) {
    const auto operand = precision == Precision::tf32 ? to_tf32 : to_bf16;
    for (const Transpose ta : kForms) {
      for (const Transpose tb : kForms) {
        CounterRng rng(7);
        Problem problem(9, 20, 700, ta, tb);
        problem.fill([&] { return static_cast<float>(rng.uniform(-1, 1)); });
        problem.run(gemm);
        for (std::int64_t i = 0; i < problem.m; ++i) {
          for (std::int64_t j = 0; j < problem.n; ++j) {
            const ExactSum expected = exact_sum(problem, i, j, operand);
            ASSERT_NEAR(problem.c.at(i, j), expected.value, 1e-6 * expected.size);
          }
        }
      }
    }
  }
}

TEST(RoundedGemm, KeepsInfinityAndNotANumberWhereTheyBelong) {
  for (const auto& [gemm, precision] : rounded_kernels()) {
    for (const Transpose ta : kForms) {
      for (const Transpose tb : kForms) {
        Problem problem(8, 40, 35, ta, tb);
        problem.fill([] { return 1.0f; });
        problem.a.at(2, 34) = kNan;
        problem.a.at(3, 0) = std::bit_cast<float>(0x7f800001u);  // a NaN below the kept digits
        problem.b.at(5, 17) = -kInfinity;
        problem.b.at(6, 39) = std::numeric_limits<float>::max();  // rounds to infinity
        problem.run(gemm);
        for (std::int64_t i = 0; i < problem.m; ++i) {
          for (std::int64_t j = 0; j < problem.n; ++j) {
            const float value = problem.c.at(i, j);
            if (i == 2 || i == 3) {
              EXPECT_TRUE(std::isnan(value)) << i << " " << j;
            } else {
              EXPECT_EQ(value, j == 17 ? -kInfinity : j == 39 ? kInfinity : 35.0f) << i << " " << j;
            }
          }
        }
      }
    }
  }
}

// What the split into blocks of rows, and tails of tiles, may not change.
void expect_bits_of_rows(Gemm gemm) {
  CounterRng rng(9);
  Problem all(23, 50, 600);
  all.fill([&] { return static_cast<float>(rng.uniform(-1, 1)); });
  all.run(gemm);
  for (std::int64_t first = 0; first < all.m; ++first) {
    std::vector<float> row(all.n);
    const MatrixView a = all.a.view();
    gemm(1, all.n, all.k, {a.data + first * a.stride, a.stride}, all.b.view(), 0, row.data(),
         all.n);
    for (std::int64_t j = 0; j < all.n; ++j) ASSERT_EQ(row[j], all.c.at(first, j));
  }
}

TEST(Bf16Gemm, BitsOfARowDoNotDependOnTheOthers) {
  if (!has_bf16_dot_products()) GTEST_SKIP() << "this CPU has no bf16 dot products";
  expect_bits_of_rows(gemm_of_pairs);
}

TEST(Fp32Gemm, BitsOfARowDoNotDependOnTheOthers) {
  for (const Gemm gemm : float_kernels()) expect_bits_of_rows(gemm);
}

// The sum that gemm.hpp promises, one number at a time.
float chain(Problem& problem, std::int64_t i, std::int64_t j, float beta, float before) {
  float sum = before, scale = beta;
  for (std::int64_t begin = 0; begin == 0 || begin < problem.k; begin += 256, scale = 1) {
    float block = 0;
    for (std::int64_t l = begin; l < std::min(problem.k, begin + 256); ++l)
      block = std::fma(problem.a.at(i, l), problem.b.at(l, j), block);
    sum = scale == 0 ? block : std::fma(scale, sum, block);
  }
  return sum;
}

// In all versions, so that CPUs of all kinds train together. The sizes reach the copied operands.
TEST(Fp32Gemm, EveryVersionHasTheBitsOfOneChainOfFusedMultiplyAdds) {
  for (const Gemm gemm : float_kernels()) {
    for (const Transpose ta : kForms) {
      for (const Transpose tb : kForms) {
        for (const std::int64_t m : {1, 6, 7, 300}) {
          for (const std::int64_t n : {1, 16, 37, 70}) {
            for (const std::int64_t k : {3, 256, 300}) {
              CounterRng rng(11);
              Problem problem(m, n, k, ta, tb);
              problem.fill([&] { return static_cast<float>(rng.uniform(-1, 1)); });
              for (const float beta : {0.0f, 0.7f}) {
                for (std::int64_t i = 0; i < m; ++i) {
                  for (std::int64_t j = 0; j < n; ++j) problem.c.at(i, j) = 0.3f;
                }
                problem.run(gemm, beta);
                for (std::int64_t i = 0; i < m; i += 5) {
                  for (std::int64_t j = 0; j < n; ++j)
                    ASSERT_EQ(problem.c.at(i, j), chain(problem, i, j, beta, 0.3f))
                        << m << " " << n << " " << k << " " << i << " " << j;
                }
              }
            }
          }
        }
      }
    }
  }
}

TEST(Fp32Gemm, AgreesWithDouble) {
  for (const Gemm gemm : float_kernels()) {
    for (const Transpose ta : kForms) {
      for (const Transpose tb : kForms) {
        CounterRng rng(5);
        Problem problem(11, 90, 700, ta, tb);
        problem.fill([&] { return static_cast<float>(rng.uniform(-1, 1)); });
        problem.run(gemm);
        for (std::int64_t i = 0; i < problem.m; ++i) {
          for (std::int64_t j = 0; j < problem.n; ++j) {
            const ExactSum expected = exact_sum(problem, i, j, [](float x) { return x; });
            ASSERT_NEAR(problem.c.at(i, j), expected.value, 1e-6 * expected.size);
          }
        }
      }
    }
  }
}

// Numbers of all kinds.
std::vector<float> numbers() {
  CounterRng rng(3);
  std::vector<float> x{0.0f, -0.0f, kInfinity, -kInfinity, kNan, std::numeric_limits<float>::max()};
  for (int i = 0; i < 5000; ++i)
    x.push_back(
        std::bit_cast<float>(static_cast<std::uint32_t>(rng.below(std::uint64_t{1} << 32))));
  for (std::uint32_t i = 0; i < 64; ++i) x.push_back(std::bit_cast<float>(0x3f800000u + (i << 14)));
  return x;
}

std::vector<float> rounded(Precision precision, const std::vector<float>& x) {
  std::vector<float> y(x.size());
  const auto width = static_cast<std::int64_t>(x.size());
  round_rows(precision, {x.data(), width}, 1, width, {y.data(), width});
  return y;
}

void expect_same_number(float actual, float expected, float of) {
  if (std::isnan(of)) {
    EXPECT_TRUE(std::isnan(actual));
  } else {
    EXPECT_EQ(std::bit_cast<std::uint32_t>(actual), std::bit_cast<std::uint32_t>(expected)) << of;
  }
}

TEST(RoundRows, AgreesWithLibTorchInBf16) {
  const std::vector<float> x = numbers(), y = rounded(Precision::bf16, x);
  for (std::size_t i = 0; i < x.size(); ++i) expect_same_number(y[i], to_bf16(x[i]), x[i]);
}

TEST(RoundRows, RoundsToTf32ToNearestAndTiesAwayFromZero) {
  // Bits before and after; each also with the other sign.
  const std::pair<std::uint32_t, std::uint32_t> cases[] = {
      {0x3f800000, 0x3f800000},  // 1
      {0x3f800fff, 0x3f800000},  // just below the tie
      {0x3f801000, 0x3f802000},  // ties, of an even and an odd number
      {0x3f803000, 0x3f804000},  //
      {0x3f801001, 0x3f802000},  // just above
      {0x3fffffff, 0x40000000},  // carries into the exponent
      {0x00000000, 0x00000000},  // 0
      {0x00000fff, 0x00000000},  // subnormal numbers keep their place
      {0x00001000, 0x00002000},  //
      {0x007fffff, 0x00800000},  // the largest of them becomes a normal one
      {0x7f7fefff, 0x7f7fe000},  // the largest tf32 number
      {0x7f7ff000, 0x7f800000},  // beyond it
      {0x7f800000, 0x7f800000},  // infinity
  };
  for (const std::uint32_t sign : {0u, 0x80000000u}) {
    for (const auto& [before, after] : cases) {
      const std::vector<float> x{std::bit_cast<float>(before | sign)};
      expect_same_number(rounded(Precision::tf32, x)[0], std::bit_cast<float>(after | sign), x[0]);
    }
    for (const std::uint32_t nan : {0x7f800001u, 0x7fc00000u, 0x7fffffffu}) {
      EXPECT_TRUE(std::isnan(rounded(Precision::tf32, {std::bit_cast<float>(nan | sign)})[0]));
    }
  }
  const std::vector<float> x = numbers(), y = rounded(Precision::tf32, x);
  for (std::size_t i = 0; i < x.size(); ++i) {
    if (!std::isfinite(x[i]) || std::fpclassify(x[i]) != FP_SUBNORMAL)
      expect_same_number(y[i], std::isfinite(x[i]) ? to_tf32(x[i]) : x[i], x[i]);
  }
}

}  // namespace
}  // namespace tpudist
