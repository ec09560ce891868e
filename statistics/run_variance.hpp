#pragma once

#include "statistics/interval.hpp"
#include "statistics/run_scores.hpp"

namespace tpudist {

// What other runs add to the variance of the mean over runs and graphs, from the mean squares of
// the two-way table graph x run within each fold. With variances s2 of
//   score = mean + graph + run (of the fold) + interaction,
//   E MS_run = s2_interaction + n0 s2_run with n0 = G / folds, E MS_interaction = s2_interaction.
// Families clustered over run means already hold the part in which runs differ between families;
// where all runs score all graphs that is the interactions, and what is missing is s2_run / R,
// estimated by (MS_run - MS_interaction) / (R G). Out of fold CR2 also sees a part of the runs: a
// family of n_f graphs, n_kf of them in fold k of n_k, holds (n_kf - n_f n_k / G) runs of that fold
// in its residuals, so that
//   share = sum_k (n_k / G)^2 - sum_f sum_k (n_kf - n_f n_k / G)^2 / (G^2 (1 - n_f / G))
// of s2_run / R is missing: 1 where there is one fold, and (sum n_k^2 - sum n_f^2) / G^2 but for
// the residuals' mean.
struct RunVariance {
  double run_square = 0, run_degrees = 0;  // MS_run
  double interaction_square = 0;           // MS_interaction
  double interaction_degrees = 0;          // 0 where no fold has two graphs
  double graphs_per_fold = 0;              // n0
  double share = 0;
  double whole_share = 0;  // sum_k (n_k / G)^2
  double graphs = 0, runs = 0;

  // Of one run: (MS_run - MS_interaction) / n0, at least 0.
  double run_component() const;
  // What is missing: max(0, share (MS_run - MS_interaction) / (n0 R)).
  double missing() const;
  // The two terms of `missing` for satterthwaite; both 0 where nothing is missing.
  VarianceEstimate run_term() const;
  VarianceEstimate interaction_term() const;
  // The variance of the mean that falls with the number of runs, times that number.
  double falling() const;
};

// At least two runs; throws Error otherwise, and as RunScores::check.
RunVariance run_variance(const RunScores& scores);

}  // namespace tpudist
