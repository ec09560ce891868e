#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <vector>

#include "results/records/run_result.hpp"
#include "results/records/sweep_record.hpp"

namespace tpudist {

// The results of the runs of one variant in one stage.
struct VariantSummary {
  int variant = 0;
  int runs = 0, finished = 0, failed = 0;
  int failed_members = 0;  // of runs that finished; `mean` is of the other members
  // The mean score. A training is all runs of one seed; its score is mean_of_members over all its
  // members; `mean` is the mean over trainings. A training counts only if all of its runs have a
  // score, and out of fold only if it has a member for every fold.
  std::optional<double> mean;
  std::optional<double> deviation;  // sample standard deviation between trainings; needs two
  int seeds = 0;                    // number of trainings that count
  std::map<std::optional<std::uint64_t>, double> scores;  // their scores, by seed
  // Every run finished without a failed member, and every training counts.
  bool complete = false;
  // The mean number of graphs per member, in the training that has the fewest; out of fold the
  // number of graphs of all folds together. 0: unknown. If it is smaller than for another variant,
  // a metric is undefined on some graphs.
  double graphs = 0;
};

// A summary of each variant that has runs, in the order of variants. `results`: one per run,
// nothing where the run has not ended.
std::vector<VariantSummary> summarise(const std::vector<SweepRun>& runs,
                                      const std::vector<std::optional<RunResult>>& results,
                                      ChoiceScore choice);

// The most graphs that any of these variants was scored on; 0 if the number of any is unknown.
double most_graphs(std::span<const VariantSummary> summaries);

// The variants that continue. Of each experiment, the best 1/keep of the variants that have runs,
// rounded up, in the order of their scores, the first among equals; with keep = 0 only the best
// one. Variants with a failed run or member, without a score for every seed, or scored on fewer
// graphs than others, come last. Throws Error when an experiment has no variant with a score, and
// ConfigError when its variants are not scored on the same graphs (SweepRecord::variant_group).
std::vector<int> chosen_variants(const SweepRecord& record, const std::vector<SweepRun>& runs,
                                 const std::vector<std::optional<RunResult>>& results, int keep);

// The standard deviation of what variant and seed do not explain of the scores: of trainings where
// variants share seeds, since what a seed adds to all variants does not help one to be chosen. From
// the residuals of the two-way table, with (variants - 1) (seeds - 1) degrees of freedom. Nothing
// for fewer than two variants or seeds, or where the seeds differ.
std::optional<double> deviation_beside_seeds(std::span<const VariantSummary> summaries);

// The selection bias of the best of `variants` equal ones: the expected largest of that many
// standard normal numbers (Blom, "Statistical estimates and transformed beta-variables", 1958)
// times `deviation`, the standard deviation of a variant's mean.
double expected_optimism(int variants, double deviation);

}  // namespace tpudist
