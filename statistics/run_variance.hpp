#pragma once

#include "statistics/interval.hpp"
#include "statistics/run_scores.hpp"

namespace tpudist {

// What other runs add to the variance of the mean over runs and graphs, from the mean squares of the
// two-way table graph x run within each fold:
//   score = mean + graph + run (of the fold) + cell,
//   E MS_run = cell^2 + n0 run^2 with n0 = G / folds, E MS_cell = cell^2 (as variances).
// Families clustered over run means already hold the part in which runs differ between families;
// where all runs score all graphs that is the cells, and what is missing is run^2 / R, estimated by
// (MS_run - MS_cell) / (R G). Out of fold CR2 also sees a part of the runs: a family of n_f graphs in
// a fold of n_k holds (n_kf - n_f n_k / G) runs in its residuals, so that
//   share = sum_k (n_k / G)^2 - sum_f sum_k (n_kf - n_f n_k / G)^2 / (G^2 (1 - n_f / G))
// of run^2 / R is missing: 1 where there is one fold, and (sum n_k^2 - sum n_f^2) / G^2 but for the
// residuals' mean.
struct RunVariance {
  double run_square = 0, run_degrees = 0;  // MS_run
  double cell_square = 0,
         cell_degrees = 0;     // MS_cell; without degrees where no fold has two graphs
  double graphs_per_fold = 0;  // n0
  double share = 0;
  double whole_share = 0;  // sum_k (n_k / G)^2
  double graphs = 0, runs = 0;

  // Of one run: (MS_run - MS_cell) / n0, at least 0.
  double run_component() const;
  // What is missing: max(0, share (MS_run - MS_cell) / (n0 R)).
  double missing() const;
  // The two terms of `missing` for satterthwaite; both 0 where nothing is missing.
  VarianceEstimate run_term() const;
  VarianceEstimate cell_term() const;
  // The variance of the mean that falls with the number of runs, times that number.
  double falling() const;
};

// At least two runs; throws Error otherwise, and as RunScores::check.
RunVariance run_variance(const RunScores& scores);

}  // namespace tpudist
