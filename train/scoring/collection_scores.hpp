#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "dist/health/job_context.hpp"
#include "results/scores/judgement.hpp"
#include "results/scores/submission.hpp"
#include "train/scoring/evaluation.hpp"
#include "train/scoring/trained_run.hpp"

namespace tpudist {

// What to score: a split, from the run's shard folder or another one.
struct ScoreRequest {
  std::string split = "valid";
  std::filesystem::path shards;
  bool means = false;  // whether to keep the combined score of every row
  // The split `test` has no run times: with `greedy` members are selected on `valid`.
  JudgementOptions judgement = {};
  std::filesystem::path scores = {};  // prediction file to write; empty = none
  int draws = 1;  // how often to score a split with run times, each with another draw of nodes
};

// How the members of one or more runs of a collection rank all rows of a split.
struct CollectionResult {
  std::string collection;
  std::vector<std::string> graphs;  // names
  // [graphs][c] combined scores, if requested; empty for a graph that no member may score.
  std::vector<std::vector<double>> mean;
  std::optional<Evaluation> evaluation;  // if the split has run times
  std::vector<Evaluation> more_draws;    // of the draws of nodes after the first one
  Judgement judgement;
  std::optional<Judgement> chosen;  // of the split `valid`, if its selection is used for `test`
};

// Scores runs of one or several collections. The members of all runs of a collection are combined,
// in the order of `ensemble.first_member` and then as given, without those rejected by the rule of
// rejection. A few graphs are scored at a time; rank 0 keeps the scores of a collection in memory,
// because members are judged over all of its graphs. Collective; rank 0 gets the results, the
// others empty ones.
//
// Throws ConfigError when runs of one collection have different graphs, when runs of unequal lists
// of collections share one, or when members are to be selected on graphs on which not all of them
// may be scored; also what require_other_trainings and judge throw.
std::vector<CollectionResult> score_runs(const std::vector<TrainedRun>& runs,
                                         const ScoreRequest& request, JobContext& context);

// The final score over the collections of all results, each of a list by itself, and its intervals.
// Complete lines; empty for one collection, or without run times.
std::string final_score_text(const std::vector<CollectionResult>& results);

// The rankings as a submission. The results must have their combined scores (`means`).
Submission make_submission(const std::vector<CollectionResult>& results);

}  // namespace tpudist
