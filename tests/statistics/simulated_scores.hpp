#pragma once

#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include "core/random.hpp"
#include "statistics/run_scores.hpp"

namespace tpudist {

// How scores come about where the truth is known:
//   score = mean + graph (with a part that its family shares) + run + interaction, less where a graph fails.
struct SimulatedWorld {
  std::vector<int> families;  // graphs of each
  bool exponential = false;   // graphs' part is 1 - Exp(1) instead of normal: a long tail downwards
  double mean = 0.7;
  double graph = 0.12, run = 0.03, interaction = 0.04;  // standard deviations
  double family_share = 0.5;                            // of the graphs' variance
  double failing = 0;                                   // probability that a graph fails...
  double failure = 0.7;                                 // and by how much it then scores less
  int runs = 3;
  int folds = 1;  // families are dealt to folds in turn; each fold has runs of its own

  double truth() const { return mean - failing * failure; }
};

// Draws of one world; a pure function of the arguments.
class SimulatedScores {
 public:
  SimulatedScores(const SimulatedWorld& world, std::uint64_t key) : world_(world), random_(key) {}

  RunScores draw() {
    RunScores result;
    const std::vector<double> runs = normals(world_.folds * world_.runs, world_.run);
    for (int family = 0; family < static_cast<int>(world_.families.size()); ++family) {
      const double shared = effect() * std::sqrt(world_.family_share);
      for (int g = 0; g < world_.families[static_cast<std::size_t>(family)]; ++g)
        add_graph(result, family, shared, runs);
    }
    return result;
  }

 private:
  double effect() {
    const double standard =
        world_.exponential ? 1 + std::log(1 - random_.uniform()) : random_.normal();
    return world_.graph * standard;
  }

  std::vector<double> normals(int count, double deviation) {
    std::vector<double> values;
    for (; count > 0; --count) values.push_back(deviation * random_.normal());
    return values;
  }

  void add_graph(RunScores& result, int family, double shared, const std::vector<double>& runs) {
    const int fold = family % world_.folds;
    double centre = world_.mean + shared + effect() * std::sqrt(1 - world_.family_share);
    if (random_.uniform() < world_.failing) centre -= world_.failure;
    result.graphs.push_back("g" + std::to_string(result.graphs.size()));
    result.families.push_back("f" + std::to_string(family));
    result.folds.push_back(fold);
    std::vector<double> scores = normals(world_.runs, world_.interaction);
    for (std::size_t r = 0; r < scores.size(); ++r)
      scores[r] += centre + runs[static_cast<std::size_t>(fold * world_.runs) + r];
    result.scores.push_back(std::move(scores));
  }

  const SimulatedWorld& world_;
  CounterRng random_;
};

inline RunScores simulated_scores(const SimulatedWorld& world, std::uint64_t key) {
  return SimulatedScores(world, key).draw();
}

// Two systems that score the same graphs, neither better on all graphs that there could be: on each
// graph they differ by a draw of `differences`, whose mean is taken as 0.
struct SimulatedPair {
  RunScores a, b;
};
inline SimulatedPair simulated_pair(const SimulatedWorld& world, SimulatedWorld differences,
                                    std::uint64_t key) {
  // The graphs' parts cancel in the difference, but not in what is told of A and B themselves.
  SimulatedWorld graphs = world;
  graphs.run = graphs.interaction = 0;
  differences.mean = 0;
  differences.run = differences.interaction = 0;
  SimulatedWorld noise = world;
  noise.mean = noise.graph = 0;
  const RunScores common = simulated_scores(graphs, mix_key({key, 1})),
                  extra = simulated_scores(differences, mix_key({key, 2}));
  SimulatedPair pair{simulated_scores(noise, mix_key({key, 3})),
                     simulated_scores(noise, mix_key({key, 4}))};
  for (std::size_t g = 0; g < common.scores.size(); ++g) {
    for (double& score : pair.a.scores[g]) score += common.scores[g][0] + extra.scores[g][0];
    for (double& score : pair.b.scores[g]) score += common.scores[g][0];
  }
  return pair;
}

}  // namespace tpudist
