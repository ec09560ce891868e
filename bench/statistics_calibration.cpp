// How often the intervals and tests of statistics/ are right where the truth is known: 2,000
// simulated experiments for each case, the same ones in every run.
//
//   build/release/bench/statistics_calibration [REPEATS] [intervals|failures|comparisons|deviations]
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

#include "statistics/comparison.hpp"
#include "statistics/score_intervals.hpp"
#include "statistics/variance_components.hpp"
#include "tests/statistics/simulated_scores.hpp"

namespace tpudist {
namespace {

struct Families {
  const char* name;
  std::vector<int> sizes;
};

const std::array kFamilies{
    Families{"1 x 7", std::vector<int>(7, 1)}, Families{"3/2/1/1", {3, 2, 1, 1}},
    Families{"1 x 20", std::vector<int>(20, 1)}, Families{"20 in 9", {4, 4, 3, 3, 2, 1, 1, 1, 1}}};

struct Coverage {
  double percent = 0, half_width = 0;  // the median

  std::string text() const { return fmt::format("{:6.1f} %  {:.3f}", percent, half_width); }
};

// `interval` of every simulated table.
template <typename Make>
Coverage coverage(const SimulatedWorld& world, int repeats, const Make& interval) {
  std::vector<double> widths;
  int held = 0;
  for (int key = 0; key < repeats; ++key) {
    const Interval found = interval(simulated_scores(world, static_cast<std::uint64_t>(key)));
    held += found.low <= world.truth() && world.truth() <= found.high;
    widths.push_back((found.high - found.low) / 2);
  }
  std::ranges::nth_element(widths, widths.begin() + std::ssize(widths) / 2);
  return {100.0 * held / repeats, widths[widths.size() / 2]};
}

bool one_graph_each(const SimulatedWorld& world) {
  return std::ranges::all_of(world.families, [](int size) { return size == 1; });
}

void print_coverage(const std::string& name, const SimulatedWorld& world, int repeats) {
  const Coverage t = coverage(world, repeats, [](const RunScores& scores) {
    return family_interval({&scores, 1})->interval;
  });
  std::string bootstrap = "-";
  if (one_graph_each(world)) {
    bootstrap = coverage(world, repeats, [](const RunScores& scores) {
                  return bootstrap_family_interval(scores).interval;
                }).text();
  }
  fmt::print("{:<34}  {:>4}  {:>16}  {:>16}\n", name, world.runs, t.text(), bootstrap);
  std::fflush(stdout);
}

// Calls `body` with a name and a world for every kind of families, distribution and number of runs; returns
// the last world.
template <typename Body>
SimulatedWorld for_all_families(const Body& body) {
  SimulatedWorld world;
  for (const bool exponential : {false, true}) {
    for (const auto& [name, sizes] : kFamilies) {
      for (const int runs : {2, 3, 5}) {
        world.families = sizes;
        world.exponential = exponential;
        world.runs = runs;
        body(fmt::format("{}, {}", name, exponential ? "exponential" : "normal"), world);
      }
    }
  }
  return world;
}

void intervals(int repeats) {
  fmt::print("95 % intervals of other families and runs: coverage, median half width\n\n");
  fmt::print("{:<34}  {:>4}  {:>16}  {:>16}\n", "families, graphs", "runs", "t", "bootstrap");
  SimulatedWorld world = for_all_families([&](const std::string& name, const SimulatedWorld& each) {
    print_coverage(name, each, repeats);
  });
  world.runs = 3;
  for (const double share : {0.0, 1.0}) {
    for (const bool exponential : {false, true}) {
      for (const std::size_t i : {std::size_t{1}, std::size_t{3}}) {
        world.families = kFamilies[i].sizes;
        world.exponential = exponential;
        world.family_share = share;
        print_coverage(
            fmt::format("{}, {}, {}", kFamilies[i].name, exponential ? "exponential" : "normal",
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
    count += p_of(compare(a, b)) < kSignificance;
  }
  return 100.0 * count / repeats;
}

void compare_equals(const std::string& name, const SimulatedWorld& world, int repeats) {
  const double by_t =
      called(world, 0.04, repeats, [](const Comparison& found) { return found.other_families->p; });
  const double by_runs =
      called(world, 0, repeats, [](const Comparison& found) { return found.these_graphs.test.p; });
  // The models are what they are: on other families their difference has mean 0.
  SimulatedWorld models = world;
  models.run = 0;
  const double by_signs = called(
      models, 0.04, repeats, [](const Comparison& found) { return found.other_families->signs.p; });
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
}
