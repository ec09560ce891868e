#pragma once

#include <fmt/core.h>
#include <gtest/gtest.h>

#include <cmath>
#include <span>
#include <vector>

#include "models/network/network.hpp"
#include "tests/models/plan_autograd.hpp"
#include "tests/models/score_vectors.hpp"

namespace tpudist::test {

// Norms of the errors of float32 in the numbers of a network on one plan, and of the numbers
// themselves: scores minus their slate's mean, and the gradient of a loss that ignores a shift.
struct FloatError {
  double scores = 0, score_size = 0;
  double gradient = 0, gradient_size = 0;
};

// The numbers of one member in double. `weights`: d loss / d score.
struct ExactValues {
  std::vector<double> scores, gradient;
};

inline ExactValues exact_values(const Network& network, std::span<const float> member,
                                const UnitInput& unit, std::span<const double> weights) {
  PlanAutograd net(network, member);
  return {centred(values(net.scores(unit, PlanAutograd::Rows::needed).delta), *unit.plan),
          net.gradient(unit, weights, PlanAutograd::Rows::needed)};
}

inline FloatError float_error(const Network& network, std::span<const float> member,
                              const UnitInput& unit, std::span<const double> weights,
                              const ExactValues& exact) {
  std::vector<float> gradient(network.parameters().length());
  const std::vector<std::span<float>> spans{gradient};
  std::vector<double> scores;
  network.gradient(
      member, 0, 1, unit,
      [&](const UnitScores& seen) {
        scores = centred(seen.delta, *unit.plan);
        return ScoreGradient{{weights.begin(), weights.end()}, {true}};
      },
      spans);
  return {distance(scores, exact.scores), norm(exact.scores),
          distance(std::vector<double>(gradient.begin(), gradient.end()), exact.gradient),
          norm(exact.gradient)};
}

// Summed over graphs and members.
struct SumOfErrors {
  FloatError square;
  void add(const FloatError& error) {
    square.scores += error.scores * error.scores;
    square.score_size += error.score_size * error.score_size;
    square.gradient += error.gradient * error.gradient;
    square.gradient_size += error.gradient_size * error.gradient_size;
  }
  double scores() const { return std::sqrt(square.scores / square.score_size); }
  double gradient() const { return std::sqrt(square.gradient / square.gradient_size); }
};

inline void expect_at_most_twice(const char* what, double dense, double refined) {
  fmt::print("{}: error over size, dense {:.3g}, refined {:.3g}, ratio {:.2f}\n", what, dense,
             refined, refined / dense);
  EXPECT_LE(refined, 2 * dense) << what;
}

}  // namespace tpudist::test
