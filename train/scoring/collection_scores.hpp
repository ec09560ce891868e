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

// What to score: a split, from the run's shard folder or from another folder.
struct ScoreRequest {
  std::string split = "valid";
  std::filesystem::path shards;
  bool means = false;  // whether to keep the combined score of every row
  JudgementOptions judgement = {};
  std::filesystem::path scores = {};  // prediction file to write; empty = none
  int draws = 1;  // number of draws of nodes, each scored separately, for a split with run times
};

// How the members of one or more runs of a collection rank all rows of a split.
struct CollectionResult {
  std::string collection;
  std::vector<std::string> graphs;  // names
  // [graphs][c] combined scores, if requested; empty for a graph that no member may score.
  std::vector<std::vector<double>> mean;
  std::optional<Evaluation> evaluation;  // if the split has run times
  std::vector<Evaluation> more_draws;    // evaluations of the draws after the first one
  Judgement judgement;
};

// Scores runs of one or several collections. Combines the members of all runs of a collection that
// the rule of rejection does not reject, in the order of `ensemble.first_member` and then as given.
// Scores a few graphs at a time. Rank 0 keeps the scores of a collection in memory, because members
// are judged over all its graphs. Collective; rank 0 gets the results, other ranks empty ones.
//
// Throws ConfigError when runs of one collection have different graphs, or when different lists of
// collections share a collection; also what require_other_trainings and judge throw.
std::vector<CollectionResult> score_runs(const std::vector<TrainedRun>& runs,
                                         const ScoreRequest& request, JobContext& context);

// The final score over the collections of all results, and its intervals. Each collection of a list
// counts by itself. Complete lines; empty for one collection, or without run times.
std::string final_score_text(const std::vector<CollectionResult>& results);

// The rankings as a submission. The results must have their combined scores (`means`).
Submission make_submission(const std::vector<CollectionResult>& results);

}  // namespace tpudist
