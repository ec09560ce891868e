#include "bench/calibration.hpp"

#include <array>
#include <cstdio>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/random.hpp"
#include "statistics/intervals/comparison.hpp"
#include "statistics/intervals/score_intervals.hpp"
#include "tests/statistics/simulated_scores.hpp"

namespace tpudist {
namespace {

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

}  // namespace

void calibrate_intervals(const WantedTables& wanted, int repeats) {
  if (wanted("designs")) designs("within reach", designs_within(), repeats);
  if (wanted("beyond")) designs("out of reach", designs_beyond(), repeats);
  if (wanted("looks")) looks(repeats);
  if (wanted("margin")) margin(repeats);
}

}  // namespace tpudist
