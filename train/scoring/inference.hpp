#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/aligned.hpp"
#include "dist/agreement.hpp"
#include "ensemble/judgement.hpp"
#include "train/experiment/context.hpp"
#include "train/experiment/experiment.hpp"
#include "train/scores/submission.hpp"
#include "train/scoring/evaluation.hpp"

namespace tpudist {

// Which weights to score in a run with averages (`train.average`). A run without averages has only
// its own.
enum class Weights { averaged, raw };

// A finished or running run, opened to score with one of its checkpoints.
struct TrainedRun {
  std::filesystem::path path;
  Experiment experiment;
  std::int64_t step = 0;
  AlignedFloats flat;                      // [M, P]
  std::vector<bool> use;                   // [M] members that did not fail
  bool averaged = false;                   // whether `flat` has averages
  std::uint64_t parameter_hash = 0;        // of `flat`
  std::optional<std::uint64_t> fold_hash;  // CheckpointSummary::fold_hash
};

// `which` checkpoint: `last` (the newest complete one), `best` or a step. A missing or damaged
// config.yaml is written again from the checkpoint, with a warning. Throws ConfigError when the
// folder holds no run, the run has no such checkpoint or one of other settings than config.yaml's,
// or every member failed; DataError when the checkpoint is damaged.
TrainedRun open_run(const std::filesystem::path& path, std::string_view which = "last",
                    Weights weights = Weights::averaged);
// Describes the opened checkpoint for messages: "step 500" or "step 500, averaged weights".
std::string opened_at(const TrainedRun& run);

// Throws ConfigError where two runs of one recipe have a member of equal weights: one training is
// given twice, as the same folder, a link or a copy. Equal weights of two recipes, or within a run,
// are named in a warning. Failed members do not count. The same on all ranks.
void require_other_trainings(const std::vector<const TrainedRun*>& runs, JobContext& context);

// Adds the members of all runs to a session, one run after another. Returns their weights, which
// the runs keep in memory.
MemberWeights add_runs(ScoringSession& session, const std::vector<const TrainedRun*>& runs);

// What all ranks of a job must have in common of a run that they score with.
std::vector<AgreedValue> values_to_agree(const TrainedRun& run);

// What to score: a split, from the run's shard folder or another one.
struct ScoreRequest {
  std::string split = "valid";
  std::filesystem::path shards;
  bool means = false;  // whether to keep the combined score of every row
  Combination combination = {};
  bool keep_all = false;  // JudgementOptions
  // JudgementOptions; for the split `test`, which has no run times, members are selected on
  // `valid`.
  bool greedy = false;
  std::filesystem::path scores = {};  // prediction file to write; empty = none
};

// How the members of one or more runs of a collection rank all rows of a split.
struct CollectionResult {
  std::string collection;
  std::vector<std::string> graphs;  // names
  // [graphs][c] combined scores, if requested.
  std::vector<std::vector<double>> mean;
  std::optional<Evaluation> evaluation;  // if the split has run times
  Judgement judgement;
  std::optional<Judgement> chosen;  // of the split `valid`, if its selection is used for `test`
};

// Scores runs of one or several collections. The members of all runs of a collection are combined,
// in the order of `ensemble.first_member` and then as given, without those rejected by the rule of
// rejection. A few graphs are scored at a time; rank 0 keeps the scores of a collection in memory,
// because members are judged over all of its graphs. Collective; rank 0 gets the results, the
// others empty ones.
//
// Throws ConfigError when runs of one collection have different graphs, or when members are to be
// selected on graphs on which not all of them may be scored; also what require_other_trainings and
// judge throw.
std::vector<CollectionResult> score_runs(const std::vector<TrainedRun>& runs,
                                         const ScoreRequest& request, JobContext& context);

// The rankings as a submission. The results must have their combined scores (`means`).
Submission make_submission(const std::vector<CollectionResult>& results);

}  // namespace tpudist
