#include "bench/calibration.hpp"

#include <algorithm>
#include <array>
#include <cstdio>
#include <string>
#include <utility>
#include <vector>

#include "core/means.hpp"
#include "core/random.hpp"
#include "statistics/intervals/comparison.hpp"
#include "statistics/intervals/score_intervals.hpp"
#include "statistics/intervals/variance_components.hpp"
#include "tests/statistics/simulated_scores.hpp"

namespace tpudist {
namespace {

// Percent of `repeats` keys for which `holds` does.
template <typename Holds>
double percent(int repeats, const Holds& holds) {
  int count = 0;
  for (int key = 0; key < repeats; ++key) count += holds(static_cast<std::uint64_t>(key));
  return 100.0 * count / repeats;
}

void deviations(int repeats) {
  fmt::print("\n90 % intervals of standard deviations: coverage in percent\n\n");
  fmt::print("{:<34}  {:>4}  {:>6}  {:>6}  {:>8}\n", "families, graphs", "runs", "graph", "run",
             "residual");
  for (const int folds : {1, 5}) {
    for (const int graphs : {7, 20}) {
      for (const int runs : {3, 5}) {
        if (graphs < 2 * folds) continue;
        SimulatedWorld world;
        world.families.assign(static_cast<std::size_t>(graphs), 1);
        world.runs = runs;
        world.folds = folds;
        std::array<int, 3> held{};
        const std::array truth{world.graph, world.run, world.interaction};
        for (std::uint64_t key = 0; key < static_cast<std::uint64_t>(repeats); ++key) {
          const VarianceComponents found = variance_components(simulated_scores(world, key));
          const std::array all{found.graph, found.run, found.residual};
          for (std::size_t i = 0; i < all.size(); ++i)
            held[i] += all[i].low <= truth[i] && truth[i] <= all[i].high;
        }
        fmt::print("{:<34}  {:>4}  {:>6.1f}  {:>6.1f}  {:>8.1f}\n",
                   fmt::format("1 x {}{}", graphs, folds == 1 ? "" : ", out of 5 folds"), runs,
                   100.0 * held[0] / repeats, 100.0 * held[1] / repeats, 100.0 * held[2] / repeats);
        std::fflush(stdout);
      }
    }
  }
}

// Several equal variants: how often any pair is called different, by best against worst alone
// ("before") and by all pairs at once; the spread of the first is `ratio` times the others'. And
// how far the best one's mean lies above its truth, seen and shrunk, where variants differ by
// `between`.
void pairs(int repeats) {
  fmt::print("\nany of equal variants called different, in percent; bias of the best\n\n");
  fmt::print("{:>8}  {:>9}  {:>6}  {:>6}  {:>6}  {:>18}  {:>18}\n", "variants", "trainings",
             "ratio", "before", "after", "seen, all equal", "seen, SD 0.02");
  for (const int count : {3, 8}) {
    for (const int runs : {2, 3, 5, 10}) {
      for (const double ratio : {1.0, 3.0, 10.0}) {
        const auto systems = [&](std::uint64_t key, double between, std::vector<double>& truth) {
          CounterRng random(mix_key({key, 77}));
          std::vector<std::vector<double>> list(static_cast<std::size_t>(count));
          for (auto& own : list) {
            truth.push_back(between * random.normal());
            for (int r = 0; r < runs; ++r)
              own.push_back(truth.back() +
                            0.03 * (truth.size() == 1 ? ratio : 1) * random.normal());
          }
          return list;
        };
        const double before = percent(repeats, [&](std::uint64_t key) {
          std::vector<double> truth;
          auto list = systems(key, 0, truth);
          std::ranges::sort(list, {}, [](const auto& own) { return mean(own); });
          return !contains(difference_interval(list.back(), list.front()), 0);
        });
        const double after = percent(repeats, [&](std::uint64_t key) {
          std::vector<double> truth;
          return std::ranges::any_of(all_pairs(systems(key, 0, truth)).pairs,
                                     [](const AllPairs::Pair& p) { return p.p < kSignificance; });
        });
        std::string biases;
        for (const double between : {0.0, 0.02}) {
          double seen = 0, shrunk = 0;
          for (int key = 0; key < repeats; ++key) {
            std::vector<double> truth, means;
            const auto list = systems(static_cast<std::uint64_t>(key), between, truth);
            for (const auto& own : list) means.push_back(mean(own));
            const auto best =
                static_cast<std::size_t>(std::ranges::max_element(means) - means.begin());
            seen += (means[best] - truth[best]) / repeats;
            shrunk += (all_pairs(list).shrunk[best] - truth[best]) / repeats;
          }
          biases += fmt::format("  {:>8.4f}, {:>8.4f}", seen, shrunk);
        }
        fmt::print("{:>8}  {:>9}  {:>6.0f}  {:>6.1f}  {:>6.1f}{}\n", count, runs, ratio, before,
                   after, biases);
        std::fflush(stdout);
      }
    }
  }
}

// Where some runs collapse by 0.3: what the interval of other runs covers.
void collapses(int repeats) {
  fmt::print("\ntrainings of SD 0.01 collapse by 0.3, in percent: coverage for other runs\n\n");
  fmt::print("{:<10}", "share");
  constexpr std::array kRuns{2, 3, 5, 10, 20, 40};
  for (const int runs : kRuns) fmt::print("  {:>6}", runs);
  for (const double share : {0.0, 0.02, 0.05, 0.1, 0.2}) {
    fmt::print("\n{:<10.2f}", share);
    for (const int runs : kRuns) {
      SimulatedWorld world;
      world.families = {1};
      world.graph = world.interaction = 0;
      world.run = 0.01;
      world.collapsing = share;
      world.runs = runs;
      fmt::print("  {:>6.1f}", percent(repeats, [&](std::uint64_t key) {
                   return contains(*run_interval(simulated_scores(world, key)), world.truth());
                 }));
    }
  }
  fmt::print("\n");
}

// Welch's test of equal recipes of unequal numbers of trainings.
void unequal(int repeats) {
  constexpr std::array kRatios{0.1, 0.33, 1.0, 3.0, 10.0};
  fmt::print(
      "\nequal means, SD of the first side by that of the second, in percent: called "
      "different\n\n");
  fmt::print("{:<10}", "trainings");
  for (const double ratio : kRatios) fmt::print("  {:>6.2f}", ratio);
  for (const auto& [a, b] : {std::pair{2, 3},
                             {2, 5},
                             {2, 7},
                             {2, 10},
                             {3, 5},
                             {3, 10},
                             {3, 15},
                             {3, 30},
                             {4, 20},
                             {5, 30}}) {
    fmt::print("\n{:<10}", fmt::format("{}, {}", a, b));
    for (const double ratio : kRatios) {
      fmt::print("  {:>6.1f}", percent(repeats, [&](std::uint64_t key) {
                   CounterRng random(mix_key({key, 6}));
                   std::vector<double> x, y;
                   for (int i = 0; i < a; ++i) x.push_back(ratio * random.normal());
                   for (int i = 0; i < b; ++i) y.push_back(random.normal());
                   return t_test_p(difference_interval(x, y)) < kSignificance;
                 }));
    }
  }
  fmt::print("\n");
}

}  // namespace

void calibrate_variants(const WantedTables& wanted, int repeats) {
  if (wanted("deviations")) deviations(repeats);
  if (wanted("pairs")) pairs(repeats);
  if (wanted("collapses")) collapses(repeats);
  if (wanted("unequal")) unequal(repeats);
}

}  // namespace tpudist
