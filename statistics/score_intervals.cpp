#include "statistics/score_intervals.hpp"

#include <algorithm>
#include <set>
#include <vector>

#include "core/error.hpp"
#include "statistics/family_bootstrap.hpp"
#include "statistics/run_variance.hpp"

namespace tpudist {
namespace {

// Key of the bootstrap's samples; an arbitrary constant.
constexpr std::uint64_t kBootstrapKey = 0x7461755f62;

// Sets all of a FamilyInterval except V_fam, and the interval from both.
FamilyInterval with_runs(std::span<const RunScoreTable> collections, const VarianceEstimate& family,
                         double level) {
  FamilyInterval result;
  result.family = family;
  result.collections = static_cast<int>(collections.size());
  const auto count = static_cast<double>(collections.size());
  double mean = 0;
  std::set<std::string> families;
  std::vector<VarianceEstimate> terms{family};
  for (const RunScoreTable& own : collections) {
    result.runs =
        &own == collections.data() ? own.run_count() : std::min(result.runs, own.run_count());
    result.graphs += own.graph_count();
    families.insert(own.families.begin(), own.families.end());
    mean += mean_score(own) / count;
    if (own.run_count() < 2) continue;
    const RunVariance runs = run_variance(own);
    for (VarianceEstimate term : {runs.run_term(), runs.interaction_term(), runs.training_term()}) {
      term.variance /= count * count;
      result.run_variance += term.variance;
      terms.push_back(term);
    }
  }
  result.families = static_cast<int>(families.size());
  result.interval = t_interval(mean, satterthwaite(terms), level);
  return result;
}

}  // namespace

std::optional<Interval> run_interval(const RunScoreTable& scores, double level) {
  scores.check();
  if (scores.run_count() < 2) return std::nullopt;
  return mean_interval(run_means(scores), level);
}

std::optional<FamilyInterval> family_interval(std::span<const RunScoreTable> collections,
                                              double level) {
  std::vector<GraphValues> means;
  for (const RunScoreTable& own : collections) {
    own.check();
    if (own.family_count() < 2) return std::nullopt;
    means.push_back({own.families, graph_means(own)});
  }
  return with_runs(collections, family_variance(means), level);
}

FamilyInterval bootstrap_family_interval(const RunScoreTable& scores, double level) {
  scores.check();
  FamilyInterval result = with_runs(
      {&scores, 1},
      bootstrap_family_variance({scores.families, graph_means(scores)}, level, kBootstrapKey),
      level);
  result.bootstrap = true;
  return result;
}

}  // namespace tpudist
