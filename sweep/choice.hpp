#pragma once

#include <optional>
#include <span>
#include <vector>

#include "sweep/records/run_result.hpp"
#include "sweep/records/sweep_record.hpp"

namespace tpudist {

// What the runs of one variant in one stage reached.
struct VariantSummary {
  int variant = 0;
  int runs = 0, finished = 0, failed = 0;
  // The mean of members: of each training, which is all runs of a seed, mean_of_members of all its
  // members, then the mean over trainings. Only trainings all of whose runs have a score count; out of
  // fold only those that have a member of every fold.
  std::optional<double> mean;
  std::optional<double> deviation;  // sample standard deviation between trainings; from two on
  int seeds = 0;                    // trainings that count
  bool complete = false;            // every run finished, and every training counts
  // On how many graphs a member of the training that has fewest was scored on average, out of fold on how
  // many all folds together; 0: unknown. Fewer than another variant has: a metric is undefined on some.
  double graphs = 0;
};

// A summary of each variant that has runs, in the order of variants. `results`: of each run, nothing
// where it has not ended.
std::vector<VariantSummary> summarise(const std::vector<SweepRun>& runs,
                                      const std::vector<std::optional<RunResult>>& results,
                                      ChoiceScore choice);

// The most graphs that one of these variants was scored on; 0 where that of one is unknown.
double most_graphs(std::span<const VariantSummary> summaries);

// The variants that go on: of each experiment the best 1/keep of those that have runs, rounded up, in
// the order of their scores (of equals the first); with keep = 0 only the best one. Variants with a
// failed run, without a score for every seed, or on fewer graphs than others, come last and are taken only
// where nothing else is left. Throws Error when an experiment has no variant with a score, ConfigError
// when its variants are not scored on the same graphs (SweepRecord::variant_group).
std::vector<int> chosen_variants(const SweepRecord& record, const std::vector<SweepRun>& runs,
                                 const std::vector<std::optional<RunResult>>& results, int keep);

// By how much the best of `variants` equal ones looks too good: the expected largest of so many normal
// numbers (Blom, "Statistical estimates and transformed beta-variables", 1958) times `deviation`, the
// standard deviation of a variant's mean.
double expected_optimism(int variants, double deviation);

}  // namespace tpudist
