#pragma once

#include "statistics/intervals/interval.hpp"
#include "statistics/intervals/run_score_table.hpp"

namespace tpudist {

// The level of the intervals of standard deviations.
inline constexpr double kDeviationLevel = 0.90;

// The sources of variation of scores, as standard deviations:
//     score = mean + graph + run + residual.
// If all runs score all graphs, the model is crossed. Out of fold there is a run for each fold and
// seed, and a graph belongs to one fold: a fold's difficulty cannot be separated from that of its
// graphs. The residual is the variation of one run on one graph.
struct VarianceComponents {
  // A standard deviation with an interval, which need not be symmetric.
  struct Deviation {
    double value = 0, low = 0, high = 0;
  };
  Deviation graph, run, residual;
};

// Estimates from the mean squares within folds, at least 0, with intervals of Williams (Biometrika
// 1962). For the upper end a mean square below the residual's counts as equal to it, because
// otherwise the interval could be empty. Throws as RunScoreTable::check, and Error for fewer than two
// runs or if no fold has two graphs.
VarianceComponents variance_components(const RunScoreTable& scores, double level = kDeviationLevel);

}  // namespace tpudist
