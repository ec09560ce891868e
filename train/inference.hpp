#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "train/context.hpp"
#include "train/evaluation.hpp"
#include "train/experiment.hpp"
#include "train/submission.hpp"

namespace tpudist {

// A finished or running run, opened to score with its newest readable checkpoint.
struct TrainedRun {
  std::filesystem::path path;
  Experiment experiment;
  std::int64_t step = 0;
  int members = 0;
  std::vector<float> flat;  // [M, P]
  std::vector<bool> use;    // [M] members that did not fail
};

// Throws ConfigError when the folder holds no run or the run no checkpoint.
TrainedRun open_run(const std::filesystem::path& path);

// Scores of all rows of a split by a run's members. `shards` overrides the run's data folder when
// not empty. Collective.
struct SplitPredictions {
  Dataset dataset;
  std::vector<GraphPrediction> graphs;
};
SplitPredictions predict_split(const TrainedRun& run, const std::string& split,
                               const std::filesystem::path& shards, JobContext& context);

// Scores the run on a split with run times.
Evaluation evaluate_run(const TrainedRun& run, const std::string& split,
                        const std::filesystem::path& shards, JobContext& context);

// The mean of several runs' (mean-of-members) scores on the same split, as a submission and, where
// there are run times, evaluated. Runs of one collection are averaged; runs of several collections
// make one submission.
struct EnsembleResult {
  std::vector<SubmissionRow> rows;  // all collections
  std::vector<std::pair<std::string, Evaluation>>
      evaluations;  // per collection; empty for test splits
};
EnsembleResult combine_runs(const std::vector<TrainedRun>& runs, const std::string& split,
                            const std::filesystem::path& shards, JobContext& context);

}  // namespace tpudist
