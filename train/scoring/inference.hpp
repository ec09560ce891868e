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

// Which weights of a run that keeps averages (`train.average`) are scored. One that keeps none has
// but its own.
enum class Weights { averaged, raw };

// A finished or running run, opened to score with one of its checkpoints.
struct TrainedRun {
  std::filesystem::path path;
  Experiment experiment;
  std::int64_t step = 0;
  AlignedFloats flat;                      // [M, P]
  std::vector<bool> use;                   // [M] members that did not fail
  bool averaged = false;                   // whether `flat` holds averages
  std::uint64_t parameter_hash = 0;        // of `flat`
  std::optional<std::uint64_t> fold_hash;  // CheckpointSummary::fold_hash
};

// `which` checkpoint: `last` (the newest that is whole), `best` or a step. A config.yaml that is
// missing or damaged is written again from the checkpoint, with a warning. Throws ConfigError when
// the folder holds no run, or the run no such checkpoint, or one of other settings than
// config.yaml's, or when every member failed; DataError when the checkpoint is damaged.
TrainedRun open_run(const std::filesystem::path& path, std::string_view which = "last",
                    Weights weights = Weights::averaged);
// What the run was opened with, for messages: "step 500" or "step 500, averaged weights".
std::string opened_at(const TrainedRun& run);

// Throws ConfigError where two runs of one recipe have a member of equal weights: one training is
// given twice, as the same folder, a link or a copy. Equal weights of two recipes, or within a run,
// are named in a warning. Failed members do not count. The same on all ranks.
void require_other_trainings(const std::vector<const TrainedRun*>& runs, JobContext& context);

// Adds the members of all runs to a session, side by side, and returns their weights, which the runs
// keep.
MemberWeights add_runs(ScoringSession& session, const std::vector<const TrainedRun*>& runs);

// What all ranks of a job must have in common of a run that they score with.
std::vector<AgreedValue> values_to_agree(const TrainedRun& run);

// What to score: a split, from another shard folder than the run's own if one is given.
struct ScoreRequest {
  std::string split = "valid";
  std::filesystem::path shards;
  bool means = false;  // whether to keep the combined score of every row
  Combination combination = {};
  bool keep_all = false;  // JudgementOptions
  // JudgementOptions; for the split `test`, which has no run times, members are chosen on `valid`.
  bool greedy = false;
  std::filesystem::path scores = {};  // a file of predictions to write; empty = none
};

// How the members of one or more runs of a collection rank a split, all rows of it.
struct CollectionResult {
  std::string collection;
  std::vector<std::string> graphs;  // names
  // [graphs][c] over the members that are combined, if asked for.
  std::vector<std::vector<double>> mean;
  std::optional<Evaluation> evaluation;  // where the split has run times
  Judgement judgement;
  std::optional<Judgement> chosen;  // of the split `valid`, where its selection ranks `test`
};

// Scores runs of the same or of several collections; runs of one collection are combined member by
// member, in the order of `ensemble.first_member` and then as given, without those that the rule of
// rejection rejects. A few graphs are scored at a time; rank 0 keeps the scores of a collection in
// memory, because members are judged over all of its graphs. Collective; the results are those of
// rank 0, and empty on the others. Throws ConfigError when runs of one collection see different
// graphs, where members are to be chosen on graphs that not all of them may be scored on, and what
// require_other_trainings and judge throw.
std::vector<CollectionResult> score_runs(const std::vector<TrainedRun>& runs,
                                         const ScoreRequest& request, JobContext& context);

// The rankings as a submission. The results must hold their means.
Submission make_submission(const std::vector<CollectionResult>& results);

}  // namespace tpudist
