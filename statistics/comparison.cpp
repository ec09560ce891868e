#include "statistics/comparison.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>

#include "core/error.hpp"
#include "statistics/distributions.hpp"
#include "statistics/family_variance.hpp"
#include "statistics/run_variance.hpp"

namespace tpudist {
namespace {

// Of drawn labellings; any other would do.
constexpr std::uint64_t kLabelKey = 0x6c6162656c73;

void require_alike(const RunScores& a, const RunScores& b) {
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

// Means over the graphs of a fold. [R]
std::vector<double> fold_means(const RunScores& scores, int fold) {
  RunScores own;
  for (int g = 0; g < scores.graph_count(); ++g) {
    if (scores.fold_of(g) == fold) own.scores.push_back(scores.scores[static_cast<std::size_t>(g)]);
  }
  return run_means(own);
}

std::vector<LabelGroup> groups_of_runs(const RunScores& a, const RunScores& b) {
  std::map<int, double> sizes;
  for (int g = 0; g < a.graph_count(); ++g) sizes[a.fold_of(g)] += 1;
  std::vector<LabelGroup> groups;
  for (const auto& [fold, graphs] : sizes)
    groups.push_back({fold_means(a, fold), fold_means(b, fold), graphs / a.graph_count()});
  return groups;
}

// The signs of a family's sum are those of exchanging its two systems.
std::vector<LabelGroup> groups_of_families(const GraphValues& differences) {
  std::map<std::string, double> sums;
  for (std::size_t g = 0; g < differences.values.size(); ++g)
    sums[differences.families[g]] += differences.values[g];
  std::vector<LabelGroup> groups;
  for (const auto& [family, sum] : sums)
    groups.push_back({{sum / 2}, {-sum / 2}, 1 / static_cast<double>(differences.values.size())});
  return groups;
}

Comparison::TheseGraphs on_these_graphs(const RunScores& a, const RunScores& b) {
  Comparison::TheseGraphs result;
  result.test = permutation_test(groups_of_runs(a, b), kLabelKey);
  if (a.run_count() < 2 || b.run_count() < 2) return result;
  const std::vector<double> of_a = run_means(a), of_b = run_means(b);
  result.interval = difference_interval(of_a, of_b);
  const double of_one = std::pow(mean_interval(of_a).error, 2) * a.run_count() +
                        std::pow(mean_interval(of_b).error, 2) * b.run_count();
  result.runs_needed = runs_needed(result.test.difference, [&](int runs) {
    return VarianceEstimate{of_one / runs, 2.0 * (runs - 1)};
  });
  return result;
}

// What the runs of both sides add to the variance on other families.
struct RunsOfBoth {
  std::vector<VarianceEstimate> terms;
  double added = 0;
  double falling = 0;  // RunVariance::falling of both
  double now = 0;      // of that, with the runs at hand

  void add(const RunScores& scores) {
    if (scores.run_count() < 2) return;
    const RunVariance runs = run_variance(scores);
    terms.push_back(runs.run_term());
    terms.push_back(runs.interaction_term());
    added += runs.missing();
    falling += runs.falling();
    now += runs.falling() / runs.runs;
  }
};

std::optional<Comparison::OtherFamilies> on_other_families(const RunScores& a, const RunScores& b) {
  if (a.family_count() < 2) return std::nullopt;
  GraphValues differences{a.families, graph_means(a)};
  const std::vector<double> of_b = graph_means(b);
  for (std::size_t g = 0; g < of_b.size(); ++g) differences.values[g] -= of_b[g];
  const double difference = mean_score(a) - mean_score(b);

  Comparison::OtherFamilies result;
  const VarianceEstimate family = family_variance({&differences, 1});
  RunsOfBoth runs{{family}};
  runs.add(a);
  runs.add(b);
  const VarianceEstimate all = satterthwaite(runs.terms);
  result.interval = {t_interval(difference, all),
                     a.family_count(),
                     a.graph_count(),
                     1,
                     std::min(a.run_count(), b.run_count()),
                     family,
                     runs.added};
  if (all.variance > 0)
    result.p = two_sided_p(difference / std::sqrt(all.variance), all.degrees);
  else
    result.p = difference == 0 ? 1 : 0;
  result.signs = permutation_test(groups_of_families(differences), kLabelKey);
  result.shake_up = shake_up(difference, family);

  // Without end of runs, what is left is how graphs differ.
  const VarianceEstimate graphs{std::max(0.0, family.variance + runs.added - runs.now),
                                family.degrees};
  result.detectable = detectable_difference(graphs);
  result.runs_needed = runs_needed(difference, [&](int count) {
    const std::array terms{graphs, VarianceEstimate{runs.falling / count, 2.0 * (count - 1)}};
    return satterthwaite(terms);
  });
  return result;
}

}  // namespace

Comparison compare(const RunScores& a, const RunScores& b) {
  require_alike(a, b);
  Comparison result;
  result.a = mean_score(a);
  result.b = mean_score(b);
  result.difference = result.a - result.b;
  result.runs_a = a.run_count();
  result.runs_b = b.run_count();
  result.families = a.family_count();
  result.graphs = a.graph_count();
  result.out_of_fold = a.is_out_of_fold();
  result.these_graphs = on_these_graphs(a, b);
  result.other_families = on_other_families(a, b);
  return result;
}

}  // namespace tpudist
