#pragma once

#include <cstdint>
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
  int failed_members = 0;  // of finished runs; `mean` is over the other members
  // The mean over trainings. A training is all runs of one seed; its score is mean_of_members over
  // all its members. A training counts only if all its runs have a score, and out of fold only if
  // every fold has a member that did not fail.
  std::optional<double> mean;
  std::optional<double> deviation;  // sample standard deviation between trainings; needs two
  int seeds = 0;                    // number of trainings that count
  // Every run finished without a failed member, and every training counts.
  bool complete = false;
  // The mean number of graphs per member, in the training with the fewest; out of fold the number
  // of graphs of all folds together. 0: unknown. If another variant has more graphs, a metric of
  // this variant is undefined on some graphs.
  double graphs = 0;
};

// A summary of each variant that has runs, in the order of variants. `results`: one per run;
// nothing for a run that has not ended.
std::vector<VariantSummary> summarise(const std::vector<SweepRun>& runs,
                                      const std::vector<std::optional<RunResult>>& results,
                                      ChoiceScore choice);

// The largest number of graphs on which one of these variants was scored; 0 if one is unknown.
double most_graphs(std::span<const VariantSummary> summaries);

// The variants that continue: the best 1/keep of each experiment's variants that have runs, rounded
// up, by descending score, of equals the first; with keep = 0 only the best variant. Variants with
// a failed run or member, without a score for every seed, or scored on fewer graphs than others,
// come last. Throws Error when an experiment has no variant with a score, and ConfigError when its
// variants are not scored on the same graphs (SweepRecord::variant_group).
std::vector<int> chosen_variants(const SweepRecord& record, const std::vector<SweepRun>& runs,
                                 const std::vector<std::optional<RunResult>>& results, int keep);

}  // namespace tpudist
