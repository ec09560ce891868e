#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include "core/random.hpp"
#include "statistics/ranking/measurement_promise.hpp"

namespace tpudist {

// Graphs of model families that an ensemble ranks, some families worse than others.
struct SimulatedRankings {
  std::vector<int> families;  // graphs of each that the promise is learned from
  double family_share = 0.5;  // of the variance between graphs of how well they are ranked
  int configs = 200;          // of each graph
  double within = 0.02, confidence = 0.9;
};

// Of test graphs, each of a new family: how many the printed promise covers, and how many an exact
// one would, which draws lots between two numbers (smoothed conformal prediction).
struct PromiseCoverage {
  int printed = 0;
  double smoothed = 0;
  std::int64_t count = 0;  // configurations to measure
};

// Draws of one world; a pure function of the arguments.
inline PromiseCoverage promise_coverage(const SimulatedRankings& world, int tests,
                                        std::uint64_t key) {
  CounterRng random(key);
  // What a graph with this effect needs: log times have SD 0.05, scores errors of SD exp(effect - 1).
  const auto draw = [&](double effect) {
    std::vector<double> times, scores;
    for (int i = 0; i < world.configs; ++i) {
      const double log_time = random.normal();
      times.push_back(std::exp(0.05 * log_time));
      scores.push_back(log_time + std::exp(effect - 1) * random.normal());
    }
    return *needed_measurements(scores, times, world.within);
  };
  const double shared = std::sqrt(world.family_share), own = std::sqrt(1 - world.family_share);
  std::vector<std::string> names;
  std::vector<std::int64_t> needed;
  std::vector<double> weights;
  const double share = 1 / (static_cast<double>(world.families.size()) + 1);
  for (std::size_t family = 0; family < world.families.size(); ++family) {
    const double effect = shared * random.normal();
    for (int g = 0; g < world.families[family]; ++g) {
      names.push_back("f" + std::to_string(family));
      needed.push_back(draw(effect + own * random.normal()));
      weights.push_back(share / world.families[family]);
    }
  }
  PromiseCoverage found;
  found.count = promise_measurements(names, needed, world.confidence).count;
  for (int test = 0; test < tests; ++test) {
    const std::int64_t need = draw(random.normal());
    found.printed += need <= found.count;
    double above = 0, equal = share;  // the weights of greater needs, and of equal ones
    for (std::size_t g = 0; g < needed.size(); ++g)
      (needed[g] > need ? above : equal) += needed[g] < need ? 0 : weights[g];
    found.smoothed += std::clamp((above + equal - (1 - world.confidence)) / equal, 0.0, 1.0);
  }
  return found;
}

}  // namespace tpudist
