// How often the intervals, tests and verdicts of statistics/ are right where the truth is known: 400
// simulated experiments for each case, the same ones in every run. Standard errors in brackets.
//
//   build/release/bench/statistics_calibration [REPEATS] [designs|beyond|looks|margin|deviations|
//       pairs|collapses|unequal|promise|gain|slowdowns]
//   build/release/bench/statistics_calibration [REPEATS] promise RANKED.json
//
// The last form splits the families of trained runs: RANKED.json is the output of `tpudist rank --json`.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/means.hpp"
#include "core/random.hpp"
#include "statistics/intervals/comparison.hpp"
#include "statistics/intervals/family_variance.hpp"
#include "statistics/intervals/score_intervals.hpp"
#include "statistics/intervals/variance_components.hpp"
#include "statistics/ranking/predicted_gain.hpp"
#include "tests/statistics/simulated_rankings.hpp"
#include "tests/statistics/simulated_scores.hpp"

namespace tpudist {
namespace {

// How often something happened.
struct Share {
  int count = 0, of = 0;

  void add(bool happened) {
    count += happened;
    ++of;
  }
  // "95.2 (1.1)": percent and standard error; of nothing "-".
  std::string text() const {
    if (of == 0) return "-";
    const double share = 1.0 * count / of;
    return fmt::format("{:.1f} ({:.1f})", 100 * share, 100 * std::sqrt(share * (1 - share) / of));
  }
};

bool contains(const Interval& interval, double value) {
  return interval.low <= value && value <= interval.high;
}

// On one more family A and B differ by so much.
double next_difference(std::uint64_t key, const SimulatedWorld& differences) {
  SimulatedWorld one = differences;
  one.families = {1};
  one.mean = one.run = one.interaction = 0;
  one.runs = 1;
  return simulated_scores(one, mix_key({key, 5})).scores[0][0];
}

struct Design {
  std::string name;
  SimulatedWorld world, differences;
  int runs_b = 0;
};

Design design(std::string name, std::vector<int> families, int runs_a, int runs_b) {
  SimulatedWorld world;
  world.families = std::move(families);
  world.runs = runs_a;
  SimulatedWorld differences = world;
  differences.graph = 0.04;
  return {std::move(name), world, differences, runs_b};
}

// Those that the intervals are made for.
std::vector<Design> designs_within() {
  const std::vector<int> eight(8, 1), twelve(12, 1);
  std::vector<Design> all{design("5/1/1, 10 v 10", {5, 1, 1}, 10, 10),
                          design("10/1x5, 10 v 10", {10, 1, 1, 1, 1, 1}, 10, 10),
                          design("3/2/1/1, 30 v 30", {3, 2, 1, 1}, 30, 30),
                          design("3/2/1/1, 5 v 5", {3, 2, 1, 1}, 5, 5),
                          design("8 families, 2 v 10", eight, 2, 10),
                          design("12 families, 2 v 5", twelve, 2, 5),
                          design("8 families, 3 v 3", eight, 3, 3),
                          design("8 families, 10 v 10", eight, 10, 10)};
  for (const double within : {0.4, 0.8}) {
    Design alike = design(fmt::format("8, 3 v 3, members alike {}", within), eight, 3, 3);
    alike.world.members = 3;
    alike.world.within = within;
    all.push_back(alike);
  }
  Design folds = design("20 in 10, 5 folds, 3 v 3", std::vector<int>(10, 2), 3, 3);
  folds.world.folds = folds.differences.folds = 5;
  folds.world.run = 0.06;
  all.push_back(folds);
  Design heavy = design("8 families, 5 v 5, t(3)", eight, 5, 5);
  heavy.world.shape = heavy.differences.shape = GraphShape::heavy;
  all.push_back(heavy);
  for (const auto& [name, families] :
       {std::pair{"8 families", eight}, {"3/2/1/1", std::vector<int>{3, 2, 1, 1}}}) {
    Design skewed = design(fmt::format("{}, 10 v 10, exponential", name), families, 10, 10);
    skewed.world.shape = skewed.differences.shape = GraphShape::exponential;
    all.push_back(skewed);
  }
  return all;
}

// Those that no interval from so few families holds.
std::vector<Design> designs_beyond() {
  std::vector<Design> all;
  for (const auto& [name, families] : {std::pair{"8 families", std::vector<int>(8, 1)},
                                       {"3/2/1/1", std::vector<int>{3, 2, 1, 1}}}) {
    const auto add = [&](std::string_view what) -> Design& {
      return all.emplace_back(design(fmt::format("{}, {}", name, what), families, 10, 10));
    };
    Design& fails = add("1 graph in 10 fails");
    fails.world.failing = 0.1;
    fails.world.graph = 0.03;
    Design& one_sided = add("A -0.3 on 1 graph in 7");
    one_sided.differences.graph = 0.02;
    one_sided.differences.failing = 1.0 / 7;
    one_sided.differences.failure = 0.3;
  }
  return all;
}

// Equal variants: A and B differ on graphs of other families by draws of mean 0 (SD 0.04, shaped as
// the graphs), and by their runs. On these graphs, once drawn, only by their runs.
void designs(std::string_view title, const std::vector<Design>& list, int repeats) {
  fmt::print(
      "\n{}, in percent: coverage on other families (A, A - B, A - B on the next family);\n"
      "equal variants called different on these graphs (t, labels) and sure to lead (chance "
      "above 95 %)\n\n"
      "{:<30}  {:>10}  {:>6}  {:>10}  {:>10}  {:>10}  {:>10}  {:>10}\n",
      title, "families, trainings", "A", "width", "A - B", "next", "these: t", "labels",
      "sure lead");
  for (const auto& [name, world, differences, runs_b] : list) {
    SimulatedWorld none = differences;
    none.graph = none.failing = 0;
    const double truth = -differences.failing * differences.failure;
    Share own, both, next, by_t, by_labels, sure;
    double width = 0;
    for (std::uint64_t key = 0; key < static_cast<std::uint64_t>(repeats); ++key) {
      const auto [a, b] = simulated_pair(world, differences, key, runs_b);
      const Interval of_a = family_interval({&a, 1})->interval;
      own.add(contains(of_a, world.truth() + truth));
      width += (of_a.high - of_a.low) / 2 / repeats;
      const Comparison::OtherFamilies found = *compare_on_other_families(a, b);
      both.add(contains(found.interval.interval, truth));
      next.add(contains(found.next, next_difference(key, differences)));
      sure.add(found.shake_up.chance > 0.95);
      const auto [same_a, same_b] = simulated_pair(world, none, key, runs_b);
      const std::vector<double> x = run_means(same_a), y = run_means(same_b);
      by_t.add(t_test_p(difference_interval(x, y)) < kSignificance);
      if (x.size() + y.size() > 20) continue;
      if (const auto labels = label_test(x, y, key)) by_labels.add(labels->p < kSignificance);
    }
    fmt::print("{:<30}  {:>10}  {:>6.3f}  {:>10}  {:>10}  {:>10}  {:>10}  {:>10}\n", name,
               own.text(), width, both.text(), next.text(), by_t.text(), by_labels.text(),
               sure.text());
    std::fflush(stdout);
  }
}

RunScoreTable first_runs(RunScoreTable scores, std::size_t runs) {
  for (std::vector<double>& own : scores.scores) own.resize(runs);
  return scores;
}

// Equal variants of growing numbers of trainings: called different at any of three readings.
void looks(int repeats) {
  fmt::print(
      "\nequal variants called different at any of three readings (3, 6, 10 trainings; 4, 7, "
      "10), in percent\n\n{:<14}  {:>14}  {:>14}  {:>14}\n",
      "read at", "each at 0.05", "--looks 3", "other families");
  for (const std::array<std::size_t, 3>& at : {std::array<std::size_t, 3>{3, 6, 10}, {4, 7, 10}}) {
    Share plain, planned, families;
    for (std::uint64_t key = 0; key < static_cast<std::uint64_t>(repeats); ++key) {
      SimulatedWorld world, none;
      world.families.assign(8, 1);
      world.runs = 10;
      none = world;
      none.graph = 0;
      const auto [a, b] = simulated_pair(world, none, key);
      bool at_one = false, at_planned = false, on_families = false;
      for (const std::size_t runs : at) {
        const RunScoreTable x = first_runs(a, runs), y = first_runs(b, runs);
        const double p = t_test_p(difference_interval(run_means(x), run_means(y)));
        at_one = at_one || p < kSignificance;
        const double level = 1 - kSignificance / 3;
        at_planned =
            at_planned || !contains(difference_interval(run_means(x), run_means(y), level), 0);
        on_families =
            on_families || !contains(compare_on_other_families(x, y, level)->interval.interval, 0);
      }
      plain.add(at_one);
      planned.add(at_planned);
      families.add(on_families);
    }
    fmt::print("{:<14}  {:>14}  {:>14}  {:>14}\n", fmt::format("{}, {}, {}", at[0], at[1], at[2]),
               plain.text(), planned.text(), families.text());
  }
}

// A is worse by just the margin: how often it is called not worse or equivalent all the same, and
// how often worse by more.
void margin(int repeats) {
  constexpr double kMargin = 0.03;
  fmt::print(
      "\nA is worse by just the margin, in percent: called equivalent or not worse; called "
      "worse by more\n\n{:<14}  {:>12}  {:>12}  {:>15}  {:>12}\n",
      "trainings", "these graphs", "by more", "other families", "by more");
  for (const int runs : {3, 5, 10}) {
    Share these, these_more, others, others_more;
    for (std::uint64_t key = 0; key < static_cast<std::uint64_t>(repeats); ++key) {
      SimulatedWorld world, none, differences;
      world.families.assign(8, 1);
      world.runs = runs;
      differences = none = world;
      none.graph = 0;
      differences.graph = 0.04;
      const auto judged = [&](const SimulatedWorld& extra, bool on_families) {
        auto [a, b] = simulated_pair(world, extra, key);
        for (auto& own : a.scores) {
          for (double& score : own) score -= kMargin;
        }
        return std::string_view(
            judge_margin(on_families ? compare_on_other_families(a, b)->interval.interval
                                     : difference_interval(run_means(a), run_means(b)),
                         kMargin));
      };
      const auto wrong = [](std::string_view text) {
        return text == "equivalent" || text == "A not worse" || text == "A better";
      };
      these.add(wrong(judged(none, false)));
      these_more.add(judged(none, false) == "B better");
      others.add(wrong(judged(differences, true)));
      others_more.add(judged(differences, true) == "B better");
    }
    fmt::print("{:<14}  {:>12}  {:>12}  {:>15}  {:>12}\n", fmt::format("{} v {}", runs, runs),
               these.text(), these_more.text(), others.text(), others_more.text());
  }
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

// Skewed values of one graph a family, half of them 0 and the others exponential, as slowdowns are: how
// often the 95 % interval on other families holds, and how often the true mean lies above.
void slowdowns(int repeats) {
  fmt::print("\nmean slowdown, intervals of 95 %\n\n{:<10}  {:>12}  {:>12}\n", "families", "holds",
             "too low");
  for (const int families : {5, 8, 16, 24}) {
    Share holds, low;
    for (std::uint64_t key = 0; key < static_cast<std::uint64_t>(repeats); ++key) {
      CounterRng random(mix_key({key, 53, static_cast<std::uint64_t>(families)}));
      GraphValues found;
      for (int f = 0; f < families; ++f) {
        found.families.push_back(std::to_string(f));
        found.values.push_back(random.uniform() < 0.5 ? 0 : -std::log(1 - random.uniform()));
      }
      const Interval interval =
          t_interval(mean(found.values), family_variance({&found, 1}), kIntervalLevel, {.low = 0});
      low.add(interval.high < 0.5);
      holds.add(interval.low <= 0.5 && 0.5 <= interval.high);
    }
    fmt::print("{:<10}  {:>12}  {:>12}\n", families, holds.text(), low.text());
  }
}

// How many to measure: how often the promised number is enough on a graph of a new family, for each
// split into families that the promise is learned from and 20 others.
void promise(int repeats) {
  fmt::print(
      "\nthe promise of 90 % on new families, in percent: as printed, and smoothed\n\n"
      "{:<44}  {:>12}  {:>8}  {:>16}\n",
      "families that it is learned from", "printed", "smoothed", "first k (median)");
  std::vector<int> uneven{9, 1, 3, 2, 1, 1, 6, 1, 2, 1, 1, 5};
  const auto show = [&](std::string_view name, const SimulatedRankings& world) {
    constexpr int kTests = 20;
    std::vector<double> printed, smoothed, counts;
    for (std::uint64_t key = 0; key < static_cast<std::uint64_t>(repeats); ++key) {
      const PromiseCoverage found = promise_coverage(world, kTests, mix_key({key, 53}));
      printed.push_back(100 * found.printed / kTests);
      smoothed.push_back(100 * found.smoothed / kTests);
      counts.push_back(static_cast<double>(found.count));
    }
    fmt::print("{:<44}  {:>12}  {:>8.1f}  {:>16.0f}\n", name,
               fmt::format("{:.1f} ({:.1f})", mean(printed),
                           std::sqrt(sample_variance(printed) / repeats)),
               mean(smoothed), median(counts));
    std::fflush(stdout);
  };
  for (const int families : {9, 12, 16, 19, 29, 49})
    show(fmt::format("{} of one graph", families),
         {.families = std::vector<int>(static_cast<std::size_t>(families), 1)});
  show("12 of 1 to 9 graphs", {.families = uneven});
  show("12 of 1 to 9 graphs, alike by 0.95", {.families = uneven, .family_share = 0.95});
  show("24 of 1 to 9 graphs", [&] {
    SimulatedRankings world{.families = uneven};
    world.families.insert(world.families.end(), uneven.begin(), uneven.end());
    return world;
  }());
  show("19 of two graphs", {.families = std::vector<int>(19, 2)});
  show("19 of one graph, 20 configurations", {.families = std::vector<int>(19, 1), .configs = 20});
}

// The same with the graphs of trained runs: their families are split at random into those that the
// promise is learned from and the others, each of which counts once.
void promise_of(const std::string& file, int repeats) {
  std::ifstream stream(file);
  const auto json = nlohmann::json::parse(stream).at("measure");
  std::map<std::string, std::vector<std::int64_t>> all;
  for (const auto& graph : json.at("needed")) all[graph["family"]].push_back(graph["count"]);
  std::vector<std::string> names;
  for (const auto& [family, needed] : all) names.push_back(family);
  fmt::print(
      "\n{} graphs of {} families: the promise of {} on the families left out\n\n{:<24}  {:>12}  "
      "{:>16}\n",
      json.at("needed").size(), names.size(), json.at("confidence").get<double>(),
      "families learned from", "holds, %", "first k (median)");
  for (std::size_t known = json.at("least_families"); known + 3 <= names.size(); ++known) {
    std::vector<double> held, counts;
    CounterRng random(mix_key({known, 53}));
    for (int split = 0; split < repeats; ++split) {
      random.shuffle(std::span(names));
      std::vector<std::string> families;
      std::vector<std::int64_t> needed;
      for (std::size_t f = 0; f < known; ++f) {
        for (const std::int64_t need : all[names[f]]) {
          families.push_back(names[f]);
          needed.push_back(need);
        }
      }
      const std::int64_t count =
          promise_measurements(families, needed, json.at("confidence")).count;
      counts.push_back(static_cast<double>(count));
      for (std::size_t f = known; f < names.size(); ++f) {
        const auto& own = all[names[f]];
        const auto enough = std::ranges::count_if(own, [&](auto need) { return need <= count; });
        held.push_back(100.0 * static_cast<double>(enough) / static_cast<double>(own.size()));
      }
    }
    fmt::print("{:<24}  {:>12.1f}  {:>16.0f}\n", known, mean(held), median(counts));
  }
}

// Members that know nothing: how often the best of a list is called better than its default.
void gain(int repeats) {
  fmt::print(
      "\nmembers whose scores are noise: the best is called better than the default, in "
      "percent\n\n{:<16}  {:>8}  {:>12}  {:>22}\n",
      "configurations", "members", "as printed", "mean gain above its SD");
  for (const int configs : {18, 100, 1000}) {
    for (const int members : {2, 3, 5, 10, 25}) {
      Share printed, plain;
      for (std::uint64_t key = 0; key < static_cast<std::uint64_t>(repeats); ++key) {
        CounterRng random(mix_key({key, static_cast<std::uint64_t>(members)}));
        std::vector<std::vector<double>> scores(static_cast<std::size_t>(members));
        for (auto& own : scores) {
          for (int k = 0; k < configs; ++k) own.push_back(random.normal());
        }
        const std::vector<MemberSpread> spreads = member_spreads(scores);
        printed.add(known_gain(spreads, 0).is_better());
        const auto best = std::ranges::min_element(
            spreads, {}, [](const MemberSpread& spread) { return mean(spread.z_scores); });
        const PredictedGain of_best = predicted_gain(spreads[0].z_scores, best->z_scores);
        plain.add(of_best.mean > of_best.deviation);
      }
      fmt::print("{:<16}  {:>8}  {:>12}  {:>22}\n", configs, members, printed.text(), plain.text());
    }
  }
}

}  // namespace
}  // namespace tpudist

int main(int argc, char** argv) {
  const int repeats = argc > 1 ? std::atoi(argv[1]) : 400;
  if (repeats < 1) {
    fmt::print(stderr, "statistics_calibration: {} is no number of repeats\n", argv[1]);
    return 2;
  }
  const std::string_view part = argc > 2 ? argv[2] : "all";
  const auto wanted = [&](std::string_view name) { return part == "all" || part == name; };
  if (wanted("designs")) tpudist::designs("within reach", tpudist::designs_within(), repeats);
  if (wanted("beyond")) tpudist::designs("out of reach", tpudist::designs_beyond(), repeats);
  if (wanted("looks")) tpudist::looks(repeats);
  if (wanted("margin")) tpudist::margin(repeats);
  if (wanted("deviations")) tpudist::deviations(repeats);
  if (wanted("pairs")) tpudist::pairs(repeats);
  if (wanted("collapses")) tpudist::collapses(repeats);
  if (wanted("unequal")) tpudist::unequal(repeats);
  if (argc > 3)
    tpudist::promise_of(argv[3], repeats);
  else if (wanted("promise"))
    tpudist::promise(repeats);
  if (wanted("gain")) tpudist::gain(repeats);
  if (wanted("slowdowns")) tpudist::slowdowns(repeats);
}
