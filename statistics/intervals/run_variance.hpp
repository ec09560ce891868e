#pragma once

#include <array>
#include <vector>

#include "statistics/intervals/interval.hpp"
#include "statistics/intervals/run_score_table.hpp"

namespace tpudist {

// The variance of the mean over runs and graphs that comes from training again, by the mean squares
// of the two-way table graph x run within each fold. The model, with a variance s2 per term, is
//     score = mean + graph + run (of the fold) + interaction,
//     E MS_run = s2_interaction + n0 s2_run with n0 = G / folds,
//     E MS_interaction = s2_interaction.
// V_fam, clustered by family over run means, already contains the variance between runs that
// differs between families. If all runs score all graphs, that part is the interaction. V_fam
// misses s2_run / R, estimated by (MS_run - MS_interaction) / (R G).
//
// Out of fold, V_fam (CR2) also contains a part of s2_run. Let fold k have n_k graphs, and family f
// n_f graphs, n_kf of them in fold k. The residuals of the family contain (n_kf - n_f n_k / G)
// times the run effect of fold k. The missing part of s2_run / R therefore is
//     share = sum_k (n_k / G)^2 - sum_f sum_k (n_kf - n_f n_k / G)^2 / (G^2 (1 - n_f / G)),
// which is 1 for one fold, and (sum n_k^2 - sum n_f^2) / G^2 apart from the residuals' mean.
//
// Out of fold, the members of one run hold out different folds but share seeds and slates, so all
// folds of a run may move together, with variance s2_training. With V the variance between runs'
// means over all graphs and W = sum_k (n_k / G)^2,
//     E V = s2_training + W (s2_run - s2_training) + s2_interaction / G.
// V_fam does not contain s2_training at all: it also misses (1 - share) s2_training / R.
struct RunVariance {
  double run_square = 0, run_degrees = 0;  // MS_run
  double interaction_square = 0;           // MS_interaction
  double interaction_degrees = 0;          // 0 if no fold has two graphs
  double graphs_per_fold = 0;              // n0
  double share = 0;
  double whole_share = 0;  // sum_k (n_k / G)^2
  double mean_square = 0;  // V: variance between runs' means over all graphs, runs - 1 degrees
  double graphs = 0, runs = 0;

  // s2_run: (MS_run - MS_interaction) / n0, at least 0.
  double run_component() const;
  // The part of s2_run that is common to all folds of a run: s2_training, at least 0; 0 for one
  // fold.
  double training_component() const;
  // The two terms that V_fam misses: share s2_run / R and (1 - share) s2_training / R; 0 if nothing
  // is missing.
  std::array<VarianceEstimate, 2> missing() const;
  // The parts of the variance of the mean that fall with the number of runs, times that number: one
  // does not depend on the number of families, one also falls with that number.
  double falling_with_runs() const;
  double falling_with_both() const;
};

// Needs at least two runs; Error otherwise. Throws as RunScoreTable::check.
RunVariance run_variance(const RunScoreTable& scores);

// V_fam and the run terms, for a sum by Howe's rule. `as_many`: all sides or collections have
// equally many runs, so the run terms become one term with Welch's degrees, as on these graphs.
std::vector<VarianceEstimate> with_runs(const VarianceEstimate& family,
                                        std::vector<VarianceEstimate> runs, bool as_many);

}  // namespace tpudist
