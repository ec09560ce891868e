// How often the intervals and tests of statistics/ are right where the truth is known: 2,000
// simulated experiments for each case, the same ones in every run.
//
//   build/release/bench/statistics_calibration [REPEATS] [intervals|failures|comparisons|deviations|
//       trainings|pairs|skewed|collapses|unequal]
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <string>
#include <string_view>
#include <type_traits>
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

const char* name_of(GraphShape shape) {
  return shape == GraphShape::normal        ? "normal"
         : shape == GraphShape::exponential ? "exponential"
                                            : "t(3)";
}

struct Families {
  const char* name;
  std::vector<int> sizes;
};

const std::array kFamilies{
    Families{"1 x 7", std::vector<int>(7, 1)}, Families{"3/2/1/1", {3, 2, 1, 1}},
    Families{"1 x 20", std::vector<int>(20, 1)}, Families{"20 in 9", {4, 4, 3, 3, 2, 1, 1, 1, 1}}};

// The intervals of all simulated tables: how many hold the truth, and the median half width.
void print_coverage(const std::string& name, const SimulatedWorld& world, int repeats) {
  std::vector<double> widths;
  int held = 0;
  for (int key = 0; key < repeats; ++key) {
    const RunScoreTable scores = simulated_scores(world, static_cast<std::uint64_t>(key));
    const Interval found = family_interval({&scores, 1})->interval;
    held += found.low <= world.truth() && world.truth() <= found.high;
    widths.push_back((found.high - found.low) / 2);
  }
  std::ranges::nth_element(widths, widths.begin() + std::ssize(widths) / 2);
  fmt::print("{:<34}  {:>4}  {:>7.1f} %  {:.3f}\n", name, world.runs, 100.0 * held / repeats,
             widths[widths.size() / 2]);
  std::fflush(stdout);
}

// Calls `body` with a name and a world for every kind of families, distribution and number of runs;
// returns the last world.
template <typename Body>
SimulatedWorld for_all_families(const Body& body) {
  SimulatedWorld world;
  for (const GraphShape shape : {GraphShape::normal, GraphShape::exponential}) {
    for (const auto& [name, sizes] : kFamilies) {
      for (const int runs : {2, 3, 5}) {
        world.families = sizes;
        world.shape = shape;
        world.runs = runs;
        body(fmt::format("{}, {}", name, name_of(shape)), world);
      }
    }
  }
  return world;
}

void intervals(int repeats) {
  fmt::print("95 % intervals of other families and runs: coverage, median half width\n\n");
  fmt::print("{:<34}  {:>4}  {:>16}\n", "families, graphs", "runs", "t");
  SimulatedWorld world = for_all_families([&](const std::string& name, const SimulatedWorld& each) {
    print_coverage(name, each, repeats);
  });
  world.runs = 3;
  for (const double share : {0.0, 1.0}) {
    for (const GraphShape shape : {GraphShape::normal, GraphShape::exponential}) {
      for (const std::size_t i : {std::size_t{1}, std::size_t{3}}) {
        world.families = kFamilies[i].sizes;
        world.shape = shape;
        world.family_share = share;
        print_coverage(fmt::format("{}, {}, {}", kFamilies[i].name, name_of(shape),
                                   share == 0 ? "unlike" : "all alike"),
                       world, repeats);
      }
    }
  }
  world = SimulatedWorld();
  world.families.assign(10, 2);
  world.folds = 5;
  world.run = 0.06;
  print_coverage("20 in 10, out of 5 folds, run 0.06", world, repeats);
}

void failures(int repeats) {
  fmt::print("\nwhere one graph in ten fails by 0.7\n\n");
  for (const double graph : {0.12, 0.03}) {
    for (const auto& [name, sizes] : kFamilies) {
      SimulatedWorld world;
      world.families = sizes;
      world.graph = graph;
      world.failing = 0.1;
      print_coverage(fmt::format("{}, graphs {:.2f}", name, graph), world, repeats);
    }
  }
}

// The share of comparisons of equal systems, in percent, in which `p_of` one calls a difference.
template <typename P>
double called(const SimulatedWorld& world, double differences, int repeats, const P& p_of) {
  SimulatedWorld extra = world;
  extra.graph = differences;
  int count = 0;
  for (std::uint64_t key = 0; key < static_cast<std::uint64_t>(repeats); ++key) {
    const auto [a, b] = simulated_pair(world, extra, key);
    if constexpr (std::is_invocable_v<P, const Comparison::OtherFamilies&>) {
      count += p_of(*compare_on_other_families(a, b)) < kSignificance;
    } else {
      count += p_of(compare(a, b)) < kSignificance;
    }
  }
  return 100.0 * count / repeats;
}

void compare_equals(const std::string& name, const SimulatedWorld& world, int repeats) {
  const double by_t =
      called(world, 0.04, repeats, [](const Comparison::OtherFamilies& found) { return found.p; });
  const double by_runs =
      called(world, 0, repeats, [](const Comparison& found) { return found.these_graphs->p; });
  // The models are what they are: on other families their difference has mean 0.
  SimulatedWorld models = world;
  models.run = 0;
  const double by_signs = called(
      models, 0.04, repeats, [](const Comparison::OtherFamilies& found) { return found.signs.p; });
  fmt::print("{:<34}  {:>4}  {:>14.1f}  {:>12.1f}  {:>12.1f}\n", name, world.runs, by_t, by_runs,
             by_signs);
  std::fflush(stdout);
}

void comparisons(int repeats) {
  fmt::print("\nequal systems that are called different, in percent\n\n");
  fmt::print("{:<34}  {:>4}  {:>14}  {:>12}  {:>12}\n", "families, graphs", "runs",
             "other families", "these graphs", "these models");
  SimulatedWorld world = for_all_families([&](const std::string& name, const SimulatedWorld& each) {
    compare_equals(name, each, repeats);
  });
  world = SimulatedWorld();
  world.families.assign(10, 2);
  world.folds = 5;
  world.run = 0.06;
  compare_equals("20 in 10, out of 5 folds, run 0.06", world, repeats);
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

// Percent of `repeats` keys for which `holds` does.
template <typename Holds>
double percent(int repeats, const Holds& holds) {
  int count = 0;
  for (int key = 0; key < repeats; ++key) count += holds(static_cast<std::uint64_t>(key));
  return 100.0 * count / repeats;
}

bool contains(const Interval& interval, double value) {
  return interval.low <= value && value <= interval.high;
}

// Trainings of three members, by how much the members of one are alike: what is counted as a run
// decides. "Before" takes members for runs.
void trainings(int repeats) {
  fmt::print(
      "\ntrainings of three members, in percent: coverage of the interval of other runs, and of "
      "other families and runs;\nequal systems called different on these graphs by Welch's t, by "
      "labels, on other families\n\n{:<10}  {:<8}  {:>6}  {:>9}  {:>14}  {:>14}  {:>14}  {:>6}  "
      "{:>14}  "
      "{:>10}\n",
      "families", "graphs", "within", "trainings", "runs: before", "families", "Welch: before",
      "labels", "families", "sure wins");
  for (const auto& [name, sizes] : {kFamilies[1], kFamilies[3]}) {
    for (const GraphShape shape :
         {GraphShape::normal, GraphShape::heavy, GraphShape::exponential}) {
      for (const double within : {0.0, 0.4, 0.8}) {
        for (const int runs : {2, 3, 5, 10}) {
          SimulatedWorld world;
          world.families = sizes;
          world.shape = shape;
          world.members = 3;
          world.within = within;
          world.runs = runs;
          SimulatedWorld before = world;
          before.as_runs = true;
          const auto runs_hold = [&](SimulatedWorld own) {
            own.graph = 0;
            return percent(repeats, [&](std::uint64_t key) {
              return contains(*run_interval(simulated_scores(own, key)), own.mean);
            });
          };
          const auto families_hold = [&](const SimulatedWorld& own) {
            return percent(repeats, [&](std::uint64_t key) {
              const RunScoreTable scores = simulated_scores(own, key);
              return contains(family_interval({&scores, 1})->interval, own.mean);
            });
          };
          const auto of_pair = [&](SimulatedWorld own, const auto& holds) {
            SimulatedWorld extra = own;
            extra.graph = 0;
            return percent(repeats, [&](std::uint64_t key) {
              const auto [a, b] = simulated_pair(own, extra, key);
              return holds(run_means(a), run_means(b));
            });
          };
          const auto by_welch = [&](const SimulatedWorld& own) {
            return of_pair(own, [](const auto& a, const auto& b) {
              return !contains(difference_interval(a, b), 0);
            });
          };
          const double by_labels = of_pair(world, [](const auto& a, const auto& b) {
            const auto test = label_test(a, b, 1);
            return test && test->p < kSignificance;
          });
          const auto by_families = [&](const SimulatedWorld& own) {
            return called(own, 0.04, repeats,
                          [](const Comparison::OtherFamilies& c) { return c.p; });
          };
          const double sure = called(world, 0.04, repeats, [](const Comparison::OtherFamilies& c) {
            return c.shake_up.chance > 0.95 ? 0.0 : 1.0;
          });
          fmt::print(
              "{:<10}  {:<8}  {:>6.1f}  {:>9}  {:>6.1f}  {:>6.1f}  {:>6.1f}  {:>6.1f}  {:>6.1f}  "
              "{:>6.1f}  {:>6.1f}  "
              "{:>6.1f}  {:>6.1f}  {:>10.1f}\n",
              name, name_of(shape), within, runs, runs_hold(before), runs_hold(world),
              families_hold(before), families_hold(world), by_welch(before), by_welch(world),
              by_labels, by_families(before), by_families(world), sure);
          std::fflush(stdout);
        }
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
                                     [](const PairDifference& p) { return p.p < kSignificance; });
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

// A system that is far worse on a few families: what the interval of the difference on other
// families covers.
void skewed(int repeats) {
  fmt::print("\nA is 0.3 worse on one family in seven, in percent: coverage of the difference\n\n");
  fmt::print("{:<10}  {:>6}  {:>6}  {:>6}\n", "families", "1 run", "10", "30");
  for (const auto& [name, sizes] : kFamilies) {
    std::string cells;
    for (const int runs : {1, 10, 30}) {
      SimulatedWorld world;
      world.families = sizes;
      world.runs = runs;
      cells += fmt::format("  {:>6.1f}", percent(repeats, [&](std::uint64_t key) {
                             auto [a, b] = simulated_pair(
                                 world,
                                 [&] {
                                   SimulatedWorld none = world;
                                   none.graph = 0.02;
                                   return none;
                                 }(),
                                 key);
                             CounterRng random(mix_key({key, 5}));
                             std::size_t g = 0;
                             for (const int size : sizes) {
                               const double worse = random.uniform() < 1.0 / 7 ? 0.3 : 0;
                               for (int i = 0; i < size; ++i, ++g) {
                                 for (double& score : a.scores[g]) score -= worse;
                               }
                             }
                             return contains(compare_on_other_families(a, b)->interval.interval,
                                             -0.3 / 7);
                           }));
    }
    fmt::print("{:<10}{}\n", name, cells);
    std::fflush(stdout);
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
}  // namespace tpudist

int main(int argc, char** argv) {
  const int repeats = argc > 1 ? std::atoi(argv[1]) : 2000;
  if (repeats < 1) {
    fmt::print(stderr, "statistics_calibration: {} is no number of repeats\n", argv[1]);
    return 2;
  }
  const std::string_view part = argc > 2 ? argv[2] : "all";
  if (part == "all" || part == "intervals") tpudist::intervals(repeats);
  if (part == "all" || part == "failures") tpudist::failures(repeats);
  if (part == "all" || part == "comparisons") tpudist::comparisons(repeats);
  if (part == "all" || part == "deviations") tpudist::deviations(repeats);
  if (part == "all" || part == "trainings") tpudist::trainings(repeats);
  if (part == "all" || part == "pairs") tpudist::pairs(repeats);
  if (part == "all" || part == "skewed") tpudist::skewed(repeats);
  if (part == "all" || part == "collapses") tpudist::collapses(repeats);
  if (part == "all" || part == "unequal") tpudist::unequal(repeats);
}
