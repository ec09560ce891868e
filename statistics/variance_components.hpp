#pragma once

#include "statistics/interval.hpp"
#include "statistics/run_scores.hpp"

namespace tpudist {

// The level of the intervals of standard deviations.
inline constexpr double kDeviationLevel = 0.90;

// What scores differ by, as standard deviations with profile likelihood intervals:
//   score = mean + graph + run + residual.
// Where all runs score all graphs, a run is one and the model is crossed; out of fold there is a
// run for each fold and seed, and a graph is one of its fold. How hard a fold is cannot be told
// from its graphs. The residual is what a run does on one graph.
struct VarianceComponents {
  double mean = 0;  // generalised least squares
  DeviationInterval graph, run, residual;
};

// By restricted maximum likelihood with variances of at least 0 (Patterson and Thompson, Biometrika
// 1971). The end of an interval is where twice the restricted log likelihood, with the other
// variances chosen anew, falls by the quantile of chi-square with one degree of freedom. Throws
// Error for fewer than two runs, or where no fold has two graphs, and as RunScores::check.
VarianceComponents variance_components(const RunScores& scores, double level = kDeviationLevel);

}  // namespace tpudist
