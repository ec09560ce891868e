#include "statistics/intervals/run_variance.hpp"

#include <algorithm>
#include <map>

#include "core/error.hpp"
#include "core/means.hpp"

namespace tpudist {
namespace {

// RunVariance::share.
double missing_share(const RunScoreTable& scores, double whole_share) {
  std::map<int, double> in_fold;
  std::map<std::string, double> in_family;
  std::map<std::pair<std::string, int>, double> in_both;
  const double graphs = scores.graph_count();
  for (int g = 0; g < scores.graph_count(); ++g) {
    const std::string& family = scores.families[static_cast<std::size_t>(g)];
    in_fold[scores.fold_of(g)] += 1;
    in_family[family] += 1;
    in_both[{family, scores.fold_of(g)}] += 1;
  }
  double seen = 0;
  for (const auto& [family, of_family] : in_family) {
    if (of_family == graphs) continue;  // no other family: CR2 sees none of s2_run
    for (const auto& [fold, of_fold] : in_fold) {
      const auto both = in_both.find({family, fold});
      const double held = (both == in_both.end() ? 0 : both->second) - of_family * of_fold / graphs;
      seen += held * held / (1 - of_family / graphs);
    }
  }
  return std::max(0.0, whole_share - seen / (graphs * graphs));
}

}  // namespace

double RunVariance::run_component() const {
  return std::max(0.0, (run_square - interaction_square) / graphs_per_fold);
}

double RunVariance::training_component() const {
  if (whole_share >= 1) return 0;
  const double between = mean_square - interaction_square / graphs;
  return std::max(0.0, (between - whole_share * run_component()) / (1 - whole_share));
}

std::array<VarianceEstimate, 2> RunVariance::missing() const {
  return {VarianceEstimate{share * run_component() / runs, run_degrees},
          {(1 - share) * training_component() / runs, runs - 1}};
}

double RunVariance::falling_with_runs() const {
  return whole_share * run_component() + (1 - whole_share) * training_component();
}

double RunVariance::falling_with_both() const {
  return interaction_square / graphs;
}

RunVariance run_variance(const RunScoreTable& scores) {
  scores.check();
  if (scores.run_count() < 2)
    throw Error(ErrorKind::failed, "one run has no spread between runs; at least 2 are needed");
  RunVariance result;
  result.graphs = scores.graph_count();
  result.runs = scores.run_count();
  double folds = 0;
  for (const TwoWayTable& fold : tables_of(scores)) {
    const double run_degrees = fold.runs - 1, interaction_degrees = (fold.graphs - 1) * run_degrees;
    result.run_square += fold.run_squares;
    result.run_degrees += run_degrees;
    result.interaction_square += fold.interaction_squares;
    result.interaction_degrees += interaction_degrees;
    result.whole_share += fold.graphs * fold.graphs / (result.graphs * result.graphs);
    folds += 1;
  }
  result.run_square /= result.run_degrees;
  if (result.interaction_degrees > 0) result.interaction_square /= result.interaction_degrees;
  result.graphs_per_fold = result.graphs / folds;
  result.mean_square = sample_variance(run_means(scores));
  result.share = missing_share(scores, result.whole_share);
  return result;
}

std::vector<VarianceEstimate> with_runs(const VarianceEstimate& family,
                                        std::vector<VarianceEstimate> runs, bool as_many) {
  if (as_many && !runs.empty()) runs = {satterthwaite(runs)};
  runs.insert(runs.begin(), family);
  return runs;
}

}  // namespace tpudist
