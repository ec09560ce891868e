#pragma once

#include <optional>
#include <vector>

#include "sweep/records/run_result.hpp"
#include "sweep/records/sweep_record.hpp"

namespace tpudist {

// The score that a sweep compares runs by; nothing where the run failed or was not scored so.
std::optional<double> score_of(const RunResult& result, ChoiceScore choice);

// What the runs of one variant in one stage reached.
struct VariantSummary {
  int variant = 0;
  int runs = 0, finished = 0, failed = 0;
  // Over seeds: first the mean over the runs (members, folds) of a seed, then over seeds. Only seeds all
  // of whose runs have a score count.
  std::optional<double> mean;
  std::optional<double> deviation;  // sample standard deviation between seeds; from two seeds on
  int seeds = 0;                    // that count
  bool complete = false;            // every run finished, and every seed counts
};

// A summary of each variant that has runs, in the order of variants. `results`: of each run, nothing
// where it has not ended.
std::vector<VariantSummary> summarise(const std::vector<SweepRun>& runs,
                                      const std::vector<std::optional<RunResult>>& results,
                                      ChoiceScore choice);

// The variants that go on: of each experiment the best 1/keep of those that have runs, rounded up, in
// the order of their scores (of equals the first); with keep = 0 only the best one. Variants with a
// failed run, or without a score for every seed, come last and are taken only where nothing else is
// left. Throws Error when an experiment has no variant with a score.
std::vector<int> chosen_variants(const SweepRecord& record, const std::vector<SweepRun>& runs,
                                 const std::vector<std::optional<RunResult>>& results, int keep);

// By how much the best of `variants` equal ones looks too good: the expected largest of so many normal
// numbers (Blom, "Statistical estimates and transformed beta-variables", 1958) times `deviation`, the
// standard deviation of a variant's mean.
double expected_optimism(int variants, double deviation);

}  // namespace tpudist
