#include "statistics/intervals/variance_components.hpp"

#include <algorithm>
#include <cmath>

#include "core/error.hpp"
#include "statistics/intervals/distributions.hpp"
#include "statistics/intervals/run_variance.hpp"

namespace tpudist {
namespace {

// 0 for what rounding leaves of equal scores.
double deviation_of(double variance) {
  const double deviation = std::sqrt(std::max(0.0, variance));
  return deviation < kScoreRounding ? 0 : deviation;
}

// Of an effect whose mean square is expected to be the residual's + `count` x the effect's variance.
VarianceComponents::Deviation effect_of(const VarianceEstimate& square, double count,
                                        const VarianceEstimate& residual, double level) {
  const auto end = [&](double p, double mean_square) {
    const double excess =
        mean_square - f_quantile(p, square.degrees, residual.degrees) * residual.variance;
    return deviation_of(square.degrees * excess / (count * chi_square_quantile(p, square.degrees)));
  };
  return {deviation_of((square.variance - residual.variance) / count),
          end((1 + level) / 2, square.variance),
          end((1 - level) / 2, std::max(square.variance, residual.variance))};
}

}  // namespace

VarianceComponents variance_components(const RunScoreTable& scores, double level) {
  const RunVariance runs = run_variance(scores);
  if (runs.interaction_degrees == 0)
    throw Error(ErrorKind::failed,
                "what scores differ by can be told apart from two runs and two graphs on only");
  VarianceEstimate graph;
  for (const TwoWayTable& fold : tables_of(scores)) {
    graph.variance += fold.graph_squares;
    graph.degrees += fold.graphs - 1;
  }
  graph.variance /= graph.degrees;
  const VarianceEstimate residual{runs.interaction_square, runs.interaction_degrees};
  const auto end = [&](double p) {
    return deviation_of(residual.degrees * residual.variance /
                        chi_square_quantile(p, residual.degrees));
  };
  return {effect_of(graph, scores.run_count(), residual, level),
          effect_of({runs.run_square, runs.run_degrees}, runs.graphs_per_fold, residual, level),
          {deviation_of(residual.variance), end((1 + level) / 2), end((1 - level) / 2)}};
}

}  // namespace tpudist
