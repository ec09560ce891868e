#include "statistics/intervals/simplex_search.hpp"

#include <gtest/gtest.h>

#include <array>
#include <cmath>

namespace tpudist {
namespace {

TEST(SimplexSearch, FindsTheValleyOfRosenbrock) {
  const auto rosenbrock = [](std::span<const double> x) {
    return 100 * std::pow(x[1] - x[0] * x[0], 2) + std::pow(1 - x[0], 2);
  };
  const std::vector<double> found = simplex_search(rosenbrock, {-1.2, 1}, std::array{0.5, 0.5});
  EXPECT_NEAR(found[0], 1, 1e-6);
  EXPECT_NEAR(found[1], 1, 1e-6);
  EXPECT_NEAR(rosenbrock(found), 0, 1e-12);
}

TEST(SimplexSearch, WalksAlongOneVariable) {
  const auto bowl = [](std::span<const double> x) { return std::abs(x[0] - 3); };
  EXPECT_NEAR(simplex_search(bowl, {0}, std::array{0.1})[0], 3, 1e-8);
}

TEST(SimplexSearch, EndsWhereNothingChanges) {
  const auto flat = [](std::span<const double>) { return 1.0; };
  EXPECT_EQ(simplex_search(flat, {0, 0}, std::array{1.0, 1.0}).size(), 2u);
}

}  // namespace
}  // namespace tpudist
