#include "models/kernels/row_functions.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

namespace tpudist::test {
namespace {

using Function = void (*)(const float* x, std::int64_t n, float* y);

// The largest error relative to the value on a grid of `low` .. `high`; subnormal values are left
// out.
double relative_error(Function function, double (*exact)(double), double low, double high) {
  constexpr int kPoints = 200000;
  std::vector<float> x(kPoints), y(kPoints);
  for (int i = 0; i < kPoints; ++i) x[i] = static_cast<float>(low + (high - low) * i / kPoints);
  function(x.data(), kPoints, y.data());
  double worst = 0;
  for (int i = 0; i < kPoints; ++i) {
    const double value = exact(static_cast<double>(x[i]));
    if (std::abs(value) >= std::numeric_limits<float>::min())
      worst = std::max(worst, std::abs(static_cast<double>(y[i]) - value) / std::abs(value));
  }
  return worst;
}

double sigmoid(double x) {
  return 1 / (1 + std::exp(-x));
}
double gelu(double x) {
  return x * std::erfc(-x / std::sqrt(2.0)) / 2;
}
double gelu_tanh(double x) {
  return x * sigmoid(2 * std::sqrt(2 / M_PI) * (x + 0.044715 * x * x * x));
}

TEST(RowFunctions, KeepTheirErrorsSmall) {
  const auto exp = [](double x) { return std::exp(x); };
  const auto log1p = [](double x) { return std::log1p(x); };
  const auto elu = [](double x) { return x > 0 ? x : std::expm1(x); };
  EXPECT_LT(relative_error(exp_values, exp, -87, 88.7), 1.2e-7);
  EXPECT_LT(relative_error(exp_values, exp, -1, 1), 1.2e-7);
  EXPECT_LT(relative_error(log1p_values, log1p, 0, 1e-3), 2e-7);
  EXPECT_LT(relative_error(log1p_values, log1p, 0, 3), 2e-7);
  EXPECT_LT(relative_error(log1p_values, log1p, 0, 1e12), 2e-7);
  EXPECT_LT(relative_error(sigmoid_values, sigmoid, -80, 30), 2e-7);
  EXPECT_LT(relative_error(silu_values, [](double x) { return x * sigmoid(x); }, -80, 30), 3e-7);
  EXPECT_LT(relative_error(elu_values, elu, -30, 2), 2e-7);
  // The argument of a small exponential is rounded first.
  EXPECT_LT(relative_error(gelu_values, gelu, -3, 6), 8e-7);
  EXPECT_LT(relative_error(gelu_values, gelu, -12, -3), 5e-6);
  EXPECT_LT(relative_error(gelu_tanh_values, gelu_tanh, -3, 6), 2e-6);
}

TEST(RowFunctions, GradientsAreThoseOfTheFunctions) {
  const struct {
    void (*gradient)(const float*, const float*, std::int64_t, float*);
    double (*value)(double);
  } cases[] = {{gelu_gradient, gelu},
               {gelu_tanh_gradient, gelu_tanh},
               {silu_gradient, [](double x) { return x * sigmoid(x); }},
               {elu_gradient, [](double x) { return x > 0 ? x : std::expm1(x); }}};
  for (const auto& [gradient, value] : cases) {
    for (float x = -6; x < 6; x += 0.37f) {
      const float d_y = 1.5f;
      float d_x = 0;
      gradient(&x, &d_y, 1, &d_x);
      constexpr double kStep = 1e-5;
      EXPECT_NEAR(d_x, 1.5 * (value(x + kStep) - value(x - kStep)) / (2 * kStep), 2e-6) << x;
    }
  }
}

TEST(RowFunctions, KeepInfinitiesAndNotANumber) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  const float x[] = {kInfinity, -kInfinity, std::numeric_limits<float>::quiet_NaN(), 200, -200};
  float y[5];
  exp_values(x, 5, y);
  EXPECT_EQ(y[0], kInfinity);
  EXPECT_EQ(y[1], 0);
  EXPECT_TRUE(std::isnan(y[2]));
  EXPECT_EQ(y[3], kInfinity);
  EXPECT_EQ(y[4], 0);
  log1p_values(x, 1, y);
  EXPECT_EQ(y[0], kInfinity);
  sigmoid_values(x, 5, y);
  EXPECT_EQ(y[0], 1);
  EXPECT_EQ(y[1], 0);
  EXPECT_TRUE(std::isnan(y[2]));
  for (const Function function : {log1p_values, gelu_values, silu_values, elu_values}) {
    function(x + 2, 1, y);
    EXPECT_TRUE(std::isnan(y[0]));
  }
}

}  // namespace
}  // namespace tpudist::test
