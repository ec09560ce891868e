#include "statistics/intervals/comparison.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <map>
#include <numeric>
#include <utility>

#include "core/error.hpp"
#include "core/means.hpp"
#include "core/random.hpp"
#include "statistics/intervals/distributions.hpp"
#include "statistics/intervals/family_variance.hpp"
#include "statistics/intervals/run_variance.hpp"

namespace tpudist {
namespace {

// detectable_shift: an arbitrary key, the approximate number of drawn pairs, the largest shift
// tried.
constexpr std::uint64_t kDrawKey = 0x7368696674;
constexpr int kDrawnTests = 30'000;
constexpr double kWidestShift = 1000;

void require_alike(const RunScoreTable& a, const RunScoreTable& b) {
  a.check();
  b.check();
  for (int g = 0; g < std::min(a.graph_count(), b.graph_count()); ++g) {
    const auto i = static_cast<std::size_t>(g);
    if (a.graphs[i] != b.graphs[i] || a.families[i] != b.families[i])
      throw DataError(fmt::format("graph {} is {} ({}) of one side and {} ({}) of the other", g,
                                  a.graphs[i], a.families[i], b.graphs[i], b.families[i]));
    if (a.fold_of(g) != b.fold_of(g))
      throw DataError(
          fmt::format("graph {} lies in fold {} of one side and {} of the other; "
                      "compare runs with the same folds",
                      a.graphs[i], a.fold_of(g), b.fold_of(g)));
  }
  if (a.graph_count() != b.graph_count())
    throw DataError(
        fmt::format("one side has {} graphs, the other {}", a.graph_count(), b.graph_count()));
}

std::optional<Comparison::TheseGraphs> on_these_graphs(const RunScoreTable& a,
                                                       const RunScoreTable& b, double level) {
  if (a.run_count() < 2 || b.run_count() < 2) return std::nullopt;
  const std::vector<double> of_a = run_means(a), of_b = run_means(b);
  Comparison::TheseGraphs result;
  result.interval = difference_interval(of_a, of_b, level, a.reach().of_differences());
  result.p = t_test_p(result.interval);
  return result;
}

// V_fam of the differences, and the variance that the runs of both sides add. Kin are one family.
struct FamilyDifferences {
  GraphValues differences;
  std::vector<double> means;  // of families; they change sign if the systems are exchanged
  std::string note;           // FamilyClusters::note
  VarianceEstimate family;
  std::vector<VarianceEstimate> runs;
  std::vector<RunVariance> sides;  // with at least two runs
  bool as_many = false;            // runs of both

  FamilyDifferences(RunScoreTable a, RunScoreTable b) : as_many(a.run_count() == b.run_count()) {
    FamilyClusters clusters = family_clusters(a.families);
    note = std::move(clusters.note);
    a.families = b.families = std::move(clusters.of);
    differences = {a.families, graph_means(a)};
    const std::vector<double> of_b = graph_means(b);
    std::map<std::string, std::vector<double>> by_family;
    for (std::size_t g = 0; g < of_b.size(); ++g)
      by_family[a.families[g]].push_back(differences.values[g] -= of_b[g]);
    for (const auto& [name, own] : by_family) means.push_back(mean(own));
    family = family_variance({&differences, 1});
    for (const RunScoreTable* scores : {&a, &b}) {
      if (scores->run_count() < 2) continue;
      for (const VarianceEstimate& term : sides.emplace_back(run_variance(*scores)).missing())
        runs.push_back(term);
    }
  }
};

// Families needed with `factor` times the runs of each side. More families reduce the graphs' own
// differences and the effects of runs on single graphs, but not the effect of a run on all graphs.
NeededRange families_needed(const FamilyDifferences& found, const DifferencePlan& plan,
                            int factor) {
  const auto families = static_cast<double>(found.means.size());
  double seen = 0;  // the part of falls-with-both that V_fam contains with the current runs
  for (const RunVariance& side : found.sides) seen += side.falling_with_both() / side.runs;
  const double own = std::max(0.0, found.family.variance - seen);
  const auto planned = [&](int number, double scale) {
    const double more = number / families;
    std::vector<VarianceEstimate> runs;
    for (const RunVariance& side : found.sides) {
      const double count = factor * side.runs;
      runs.push_back({scale * side.falling_with_runs() / count, count - 1});
    }
    return howe(with_runs({scale * (own + seen / factor) / more,
                           std::max(1.0, found.family.degrees * more)},
                          std::move(runs), found.as_many),
                plan.level);
  };
  return needed_number(plan.difference, found.family.degrees, planned, plan.level);
}

// One common spread is assumed unless the test contradicts. In simulations of 3 and 8 systems of 2
// to 10 runs, one with 1, 3 or 10 times the others' spread, all_pairs then calls a pair different
// in at most 6 % (bench/statistics_calibration); with the usual 0.05, in up to 14 %.
constexpr double kOneSpread = 0.5;  // p of Bartlett's test
constexpr double kFewestRuns = 3;   // two runs say too little about a spread

struct Spread {
  double mean = 0, variance = 0, runs = 0;
};

std::vector<Spread> spreads_of(std::span<const std::vector<double>> run_means) {
  if (run_means.size() < 2) throw Error(ErrorKind::failed, "one system has no pair");
  std::vector<Spread> spreads;
  for (const std::vector<double>& own : run_means) {
    if (own.size() < 2)
      throw Error(ErrorKind::failed, fmt::format("{} runs have no spread", own.size()));
    spreads.push_back({mean(own), sample_variance(own), static_cast<double>(own.size())});
  }
  return spreads;
}

VarianceEstimate pooled_variance(std::span<const Spread> spreads) {
  VarianceEstimate pooled;
  for (const Spread& own : spreads) {
    pooled.variance += (own.runs - 1) * own.variance;
    pooled.degrees += own.runs - 1;
  }
  pooled.variance /= pooled.degrees;
  return pooled;
}

// Whether runs with this variance score alike.
bool is_alike(double variance) {
  return std::sqrt(variance) < kScoreRounding;
}

// Bartlett, Proceedings of the Royal Society A 1937.
bool spreads_are_equal(std::span<const Spread> spreads, const VarianceEstimate& pooled) {
  double statistic = 0, correction = -1 / pooled.degrees;
  for (const Spread& own : spreads) {
    if (own.runs < kFewestRuns) return false;
    if (is_alike(own.variance)) return false;
    statistic += (own.runs - 1) * std::log(pooled.variance / own.variance);
    correction += 1 / (own.runs - 1);
  }
  const auto degrees = static_cast<double>(spreads.size() - 1);
  return statistic / (1 + correction / (3 * degrees)) <
         chi_square_quantile(1 - kOneSpread, degrees);
}

// Adjusts p values for their number by Holm's steps. Pairs without p come last.
void adjust_by_holm(std::vector<AllPairs::Pair>& pairs) {
  std::vector<std::size_t> order(pairs.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::sort(order, {},
                    [&](std::size_t i) { return std::isnan(pairs[i].p) ? 2 : pairs[i].p; });
  double least = 0;
  for (std::size_t i = 0; i < order.size(); ++i) {
    double& p = pairs[order[i]].p;
    if (std::isnan(p)) break;
    p = least = std::max(least, std::min(1.0, static_cast<double>(order.size() - i) * p));
  }
}

// A system's mean keeps the share tau^2 / (tau^2 + its own error^2) of its distance from the mean
// of all; tau^2 is the variance of the means beyond their errors.
std::vector<double> shrunk_means(std::span<const Spread> spreads, const VarianceEstimate& pooled,
                                 bool one_spread) {
  if (spreads.size() < 3 || is_alike(pooled.variance)) return {};
  std::vector<double> means, errors;
  for (const Spread& own : spreads) {
    means.push_back(own.mean);
    // A spread of 0 is unknown: take the pooled one.
    const bool by_all = one_spread || is_alike(own.variance);
    errors.push_back((by_all ? pooled.variance : own.variance) / own.runs);
  }
  const double centre = mean(means);
  const double between = sample_variance(means) - mean(errors);
  for (std::size_t i = 0; i < means.size(); ++i) {
    const double kept = between <= 0 ? 0 : between / (between + errors[i]);
    means[i] = centre + kept * (means[i] - centre);
  }
  return means;
}

// Draws equal systems with normal runs of SD 1, and counts how often all_pairs finds the shifted
// first system different from another. A bound replaces p if it gives the same decision.
class DrawnPairs {
 public:
  DrawnPairs(int systems, int runs)
      : runs_(runs),
        pairs_(systems * (systems - 1) / 2),
        range_(systems > 2 && runs >= kFewestRuns
                   ? range_quantile(kIntervalLevel, systems, systems * (runs - 1.0))
                   : 0) {
    CounterRng random(kDrawKey);
    const int draws = std::clamp(kDrawnTests / pairs_, 100, 2000);
    std::vector<std::vector<double>> means(static_cast<std::size_t>(systems));
    for (int i = 0; i < draws; ++i) {
      for (auto& own : means) {
        own.clear();
        for (int r = 0; r < runs; ++r) own.push_back(random.normal());
      }
      add(spreads_of(means));
    }
  }

  // The share of differences between the shifted system and another that are found.
  double found(double shift) const {
    double count = 0, all = 0;
    for (const Draw& draw : draws_) {
      count += draw.one_spread ? by_range(draw, shift) : by_holm(draw, shift);
      all += static_cast<double>(draw.spreads.size() - 1);
    }
    return count / all;
  }

 private:
  struct Draw {
    std::vector<Spread> spreads;
    double error = 0;  // of a difference, with one spread
    bool one_spread = false;
    std::vector<double> others;  // p below kSignificance of pairs without the first system
  };

  void add(std::vector<Spread> spreads) {
    const VarianceEstimate pooled = pooled_variance(spreads);
    Draw draw{{}, std::sqrt(2 * pooled.variance / runs_), false, {}};
    draw.one_spread = spreads.size() > 2 && spreads_are_equal(spreads, pooled);
    for (std::size_t i = 1; !draw.one_spread && i < spreads.size(); ++i) {
      for (std::size_t j = i + 1; j < spreads.size(); ++j)
        keep(draw.others, welch_p(spreads[i], spreads[j], 0));
    }
    draw.spreads = std::move(spreads);
    draws_.push_back(std::move(draw));
  }

  static void keep(std::vector<double>& list, double p) {
    if (p < kSignificance) list.push_back(p);
  }

  // 1 if p cannot be below kSignificance.
  double welch_p(const Spread& a, const Spread& b, double shift) const {
    const double t =
        std::abs(a.mean - b.mean + shift) / std::sqrt((a.variance + b.variance) / runs_);
    if (t < 1.95) return 1;
    const double sum = a.variance + b.variance;
    return two_sided_p(
        t, sum * sum * (runs_ - 1) / (a.variance * a.variance + b.variance * b.variance));
  }

  double by_range(const Draw& draw, double shift) const {
    const double bound = range_ / std::sqrt(2.0) * draw.error;
    const Spread& first = draw.spreads.front();
    return static_cast<double>(std::ranges::count_if(
        std::span(draw.spreads).subspan(1),
        [&](const Spread& other) { return std::abs(first.mean + shift - other.mean) > bound; }));
  }

  double by_holm(const Draw& draw, double shift) const {
    std::vector<std::pair<double, bool>> list;  // p, and whether the pair has the first system
    for (const double p : draw.others) list.emplace_back(p, false);
    for (const Spread& other : std::span(draw.spreads).subspan(1)) {
      const double p = welch_p(draw.spreads.front(), other, shift);
      if (p < kSignificance) list.emplace_back(p, true);
    }
    std::ranges::sort(list);
    double count = 0, left = pairs_;
    for (const auto& [p, own] : list) {
      if (p * left-- >= kSignificance) break;
      count += own;
    }
    return count;
  }

  double runs_;
  int pairs_;
  double range_;
  std::vector<Draw> draws_;
};

}  // namespace

std::optional<Comparison::OtherFamilies> compare_on_other_families(const RunScoreTable& a,
                                                                   const RunScoreTable& b,
                                                                   double level) {
  require_alike(a, b);
  if (a.family_count() < 2) return std::nullopt;
  const FamilyDifferences found(a, b);
  const Reach reach = a.reach().of_differences();
  const auto families = static_cast<double>(found.means.size());
  Comparison::OtherFamilies result;
  FamilyInterval& own = result.interval;
  own.families = static_cast<int>(found.means.size());
  own.graphs = a.graph_count();
  own.collections = 1;
  own.runs = std::min(a.run_count(), b.run_count());
  own.family = found.family;
  for (const VarianceEstimate& term : found.runs) own.run_variance += term.variance;
  if (!found.note.empty()) own.notes.insert(found.note);
  const auto terms = with_runs(found.family, found.runs, found.as_many);
  own.interval = t_interval(mean_score(a) - mean_score(b), howe(terms, level), level, reach);
  // For one more family, not for its graphs: each family's mean counts once.
  const auto next =
      with_runs({std::pow(mean_interval(found.means).error, 2) * (families + 1), families - 1},
                found.runs, found.as_many);
  result.next = t_interval(mean(found.means), howe(next, level), level, reach);
  // The degrees of a sum depend on the level; p and shake_up must not.
  result.p = own.runs > 1 ? howe_p(own.interval.value, terms) : kNone;
  result.shake_up = own.runs > 1 ? shake_up(result.next.value, howe(next)) : ShakeUp{kNone, kNone};
  return result;
}

const char* judge_margin(const Interval& difference, double margin) {
  const bool a_not_worse = difference.low > -margin, b_not_worse = difference.high < margin;
  return difference.low >= margin     ? "A better"
         : difference.high <= -margin ? "B better"
         : a_not_worse && b_not_worse ? "equivalent"
         : a_not_worse                ? "A not worse"
         : b_not_worse                ? "B not worse"
                                      : "undecided";
}

Comparison compare(const RunScoreTable& a, const RunScoreTable& b, double level) {
  require_alike(a, b);
  Comparison result;
  result.level = level;
  result.a = mean_score(a);
  result.b = mean_score(b);
  result.difference = result.a - result.b;
  result.graphs = a.graph_count();
  result.these_graphs = on_these_graphs(a, b, level);
  result.other_families = compare_on_other_families(a, b, level);
  result.families = result.other_families ? result.other_families->interval.families : 1;
  return result;
}

DifferencePlan plan_difference(const RunScoreTable& a, const RunScoreTable& b, double difference,
                               double level) {
  if (!(difference > 0))
    throw Error(ErrorKind::failed, fmt::format("a difference of {} cannot be found", difference));
  require_alike(a, b);
  DifferencePlan plan;
  plan.difference = difference;
  plan.level = level;
  const int runs = std::min(a.run_count(), b.run_count());
  if (runs > 1) {
    const double of_a = std::pow(mean_interval(run_means(a)).error, 2) * a.run_count(),
                 of_b = std::pow(mean_interval(run_means(b)).error, 2) * b.run_count();
    const Interval now = difference_interval(run_means(a), run_means(b));
    plan.alike_runs = !now.is_known();
    const auto planned = [&](int number, double scale) {
      const std::array terms{VarianceEstimate{scale * of_a / number, number - 1.0},
                             VarianceEstimate{scale * of_b / number, number - 1.0}};
      return satterthwaite(terms);
    };
    if (now.is_known()) plan.runs = needed_number(difference, now.degrees, planned, level);
  }
  if (a.family_count() < 2) return plan;
  const FamilyDifferences found(a, b);
  plan.alike_families =
      is_alike(satterthwaite(with_runs(found.family, found.runs, found.as_many)).variance);
  if (plan.alike_families) return plan;
  plan.families = families_needed(found, plan, 1);
  if (runs > 1) plan.families_with_more_runs = families_needed(found, plan, 10);
  return plan;
}

const char* AllPairs::test_name() const {
  return pairs.size() == 1 ? "Welch's t test"
         : one_spread      ? "Tukey's test"
                           : "Welch's t tests with Holm's correction";
}

AllPairs all_pairs(std::span<const std::vector<double>> run_means, Reach reach) {
  const std::vector<Spread> spreads = spreads_of(run_means);
  const VarianceEstimate pooled = pooled_variance(spreads);
  const int count = static_cast<int>(spreads.size());
  AllPairs result;
  result.one_spread = count > 2 && spreads_are_equal(spreads, pooled);
  const double number = count * (count - 1) / 2.0;
  const double range =
      result.one_spread ? range_quantile(kIntervalLevel, count, pooled.degrees) : 0;
  for (int i = 0; i < count; ++i) {
    for (int j = i + 1; j < count; ++j) {
      const Spread &a = spreads[static_cast<std::size_t>(i)],
                   &b = spreads[static_cast<std::size_t>(j)];
      const double difference = a.mean - b.mean;
      AllPairs::Pair& pair = result.pairs.emplace_back(AllPairs::Pair{i, j, {}, 1});
      if (result.one_spread) {
        const double error = std::sqrt(pooled.variance * (1 / a.runs + 1 / b.runs));
        const double half = range / std::sqrt(2.0) * error;
        pair.interval = {difference, error, pooled.degrees, std::max(difference - half, reach.low),
                         std::min(difference + half, reach.high)};
        pair.p = 1 - range_probability(std::sqrt(2.0) * std::abs(difference) / error, count,
                                       pooled.degrees);
      } else {
        pair.interval = difference_interval(run_means[static_cast<std::size_t>(i)],
                                            run_means[static_cast<std::size_t>(j)],
                                            1 - kSignificance / number, reach);
        pair.p = t_test_p(pair.interval);
      }
    }
  }
  if (!result.one_spread) adjust_by_holm(result.pairs);
  result.shrunk = shrunk_means(spreads, pooled, result.one_spread);
  return result;
}

double detectable_shift(int systems, int runs) {
  if (systems < 2 || runs < 2)
    throw Error(ErrorKind::failed,
                fmt::format("{} systems of {} runs show no difference", systems, runs));
  const DrawnPairs drawn(systems, runs);
  if (drawn.found(kWidestShift) < kPower) return std::numeric_limits<double>::infinity();
  double low = 0, high = 1;
  while (drawn.found(high) < kPower) {
    low = high;
    high *= 2;
  }
  while (high - low > 0.01 * high) {
    const double middle = (low + high) / 2;
    (drawn.found(middle) < kPower ? low : high) = middle;
  }
  return high;
}

}  // namespace tpudist
