#pragma once

#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include "core/means.hpp"
#include "core/random.hpp"
#include "statistics/intervals/run_score_table.hpp"
#include "tests/statistics/label_test.hpp"

namespace tpudist {

// A model of scores whose truth is known:
//   score = mean + graph (with a part that its family shares) + run + interaction,
//           less if the graph fails or the run collapses.
enum class GraphShape {
  normal,
  exponential,  // 1 - Exp(1): a long tail downwards
  heavy,        // Student's t(3) / sqrt(3): long tails on both sides
};
struct SimulatedWorld {
  std::vector<int> families;  // graphs of each
  GraphShape shape = GraphShape::normal;
  double mean = 0.7;
  double graph = 0.12, run = 0.03, interaction = 0.04;  // standard deviations
  double family_share = 0.5;                            // of the graphs' variance
  double failing = 0;                                   // probability that a graph fails
  double failure = 0.7;                                 // loss of score of a failed graph
  double collapsing = 0;                                // probability that a run collapses
  double collapse = 0.3;                                // loss of score of a collapsed run
  int runs = 3;
  int folds = 1;    // families are dealt to folds in turn; each fold has a member of its own
  int members = 1;  // of a run, whose score is their mean
  // Correlation between the effects of two members, or two folds, of a run.
  double within = 0;
  bool as_runs = false;  // wrongly calls every member a run

  double truth() const { return mean - failing * failure - collapsing * collapse; }
};

// Draws of one world; a pure function of the arguments.
class SimulatedScores {
 public:
  SimulatedScores(const SimulatedWorld& world, std::uint64_t key) : world_(world), random_(key) {}

  RunScoreTable draw() {
    RunScoreTable result;
    common_ = normals(world_.runs);
    for (int fold = 0; fold < world_.folds; ++fold)
      effects_.push_back(members(world_.run, common_));
    for (int run = 0; world_.collapsing > 0 && run < world_.runs; ++run) {
      if (random_.uniform() < world_.collapsing) collapse(run);
    }
    for (int family = 0; family < static_cast<int>(world_.families.size()); ++family) {
      const double shared = effect() * std::sqrt(world_.family_share);
      for (int g = 0; g < world_.families[static_cast<std::size_t>(family)]; ++g)
        add_graph(result, family, shared);
    }
    return result;
  }

 private:
  double effect() {
    switch (world_.shape) {
      case GraphShape::exponential:
        return world_.graph * (1 + std::log(1 - random_.uniform()));
      case GraphShape::heavy: {
        const double z = random_.normal();
        double square = 0;
        for (int i = 0; i < 3; ++i) square += std::pow(random_.normal(), 2);
        return world_.graph * z / std::sqrt(square);
      }
      case GraphShape::normal:
        break;
    }
    return world_.graph * random_.normal();
  }

  std::vector<double> normals(int count) {
    std::vector<double> values;
    for (; count > 0; --count) values.push_back(random_.normal());
    return values;
  }

  // [runs x members], where members of a run share the part `within` of the variance.
  std::vector<double> members(double deviation, const std::vector<double>& common) {
    std::vector<double> values;
    for (const double shared : common) {
      for (const double own : normals(world_.members))
        values.push_back(deviation *
                         (std::sqrt(world_.within) * shared + std::sqrt(1 - world_.within) * own));
    }
    return values;
  }

  // Lowers the scores of all members of a run, on all graphs.
  void collapse(int run) {
    for (std::vector<double>& own : effects_) {
      for (int m = 0; m < world_.members; ++m)
        own[static_cast<std::size_t>(run * world_.members + m)] -= world_.collapse;
    }
  }

  void add_graph(RunScoreTable& result, int family, double shared) {
    const int fold = family % world_.folds;
    double centre = world_.mean + shared + effect() * std::sqrt(1 - world_.family_share);
    if (random_.uniform() < world_.failing) centre -= world_.failure;
    result.graphs.push_back("g" + std::to_string(result.graphs.size()));
    result.families.push_back("f" + std::to_string(family));
    result.folds.push_back(fold);
    std::vector<double> scores = members(world_.interaction, normals(world_.runs));
    for (std::size_t m = 0; m < scores.size(); ++m)
      scores[m] += centre + effects_[static_cast<std::size_t>(fold)][m];
    auto& own = result.scores.emplace_back();
    const auto size = static_cast<std::size_t>(world_.as_runs ? 1 : world_.members);
    for (std::size_t m = 0; m < scores.size(); m += size)
      own.push_back(tpudist::mean({scores.data() + m, size}));
  }

  std::vector<double> common_;                // [runs] of runs' effects
  std::vector<std::vector<double>> effects_;  // [folds][runs x members]
  const SimulatedWorld& world_;
  CounterRng random_;
};

inline RunScoreTable simulated_scores(const SimulatedWorld& world, std::uint64_t key) {
  return SimulatedScores(world, key).draw();
}

// Two systems that score the same graphs. On each graph they differ by a draw of `differences`,
// whose mean is taken as 0, so that neither is better on all possible graphs. B has `runs_b` runs;
// 0: as many as A.
struct SimulatedPair {
  RunScoreTable a, b;
};
inline SimulatedPair simulated_pair(const SimulatedWorld& world, SimulatedWorld differences,
                                    std::uint64_t key, int runs_b = 0) {
  // The effects of graphs cancel in the difference, but not in the scores of A and B.
  SimulatedWorld graphs = world;
  graphs.run = graphs.interaction = 0;
  differences.mean = 0;
  differences.run = differences.interaction = 0;
  SimulatedWorld noise = world;
  noise.mean = noise.graph = noise.failing = 0;
  SimulatedWorld noise_b = noise;
  if (runs_b > 0) noise_b.runs = runs_b;
  const RunScoreTable common = simulated_scores(graphs, mix_key({key, 1})),
                      extra = simulated_scores(differences, mix_key({key, 2}));
  SimulatedPair pair{simulated_scores(noise, mix_key({key, 3})),
                     simulated_scores(noise_b, mix_key({key, 4}))};
  for (std::size_t g = 0; g < common.scores.size(); ++g) {
    for (double& score : pair.a.scores[g]) score += common.scores[g][0] + extra.scores[g][0];
    for (double& score : pair.b.scores[g]) score += common.scores[g][0];
  }
  return pair;
}

}  // namespace tpudist
