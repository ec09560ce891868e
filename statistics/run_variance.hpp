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
//
// Out of fold the members of one run that hold out different folds share seeds and slates, so that
// runs may differ on all folds alike by s2_training. With V the variance between runs' means over
// all graphs and W = sum_k (n_k / G)^2,
//   E V = s2_training + W (s2_run - s2_training) + s2_interaction / G,
// and V_fam does not see s2_training at all: (1 - share) s2_training / R is missing besides.
struct RunVariance {
  double run_square = 0, run_degrees = 0;  // MS_run
  double interaction_square = 0;           // MS_interaction
  double interaction_degrees = 0;          // 0 where no fold has two graphs
  double graphs_per_fold = 0;              // n0
  double share = 0;
  double whole_share = 0;  // sum_k (n_k / G)^2
  double mean_square = 0;  // V: between runs' means over all graphs, runs - 1 degrees
  double graphs = 0, runs = 0;

  // Of one run: (MS_run - MS_interaction) / n0, at least 0.
  double run_component() const;
  // Of these, what is common to all folds of a run: s2_training, at least 0; 0 with one fold.
  double training_component() const;
  // What is missing: (share s2_run + (1 - share) s2_training) / R.
  double missing() const;
  // The terms of `missing` for satterthwaite; 0 where nothing is missing.
  VarianceEstimate run_term() const;
  VarianceEstimate interaction_term() const;
  VarianceEstimate training_term() const;
  // The variance of the mean that falls with the number of runs, times that number: what is left of
  // it with any number of families, and what falls with them as well.
  double falling_with_runs() const;
  double falling_with_both() const;
};

// At least two runs; throws Error otherwise, and as RunScores::check.
RunVariance run_variance(const RunScores& scores);

}  // namespace tpudist
