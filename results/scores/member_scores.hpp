#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "results/records/predictions.hpp"
#include "results/records/run_result.hpp"
#include "results/scores/out_of_fold.hpp"

namespace tpudist {

// A graph with the scores of a run's members: the collection's primary metric (Kendall tau-b or
// tile score).
struct GraphResult {
  std::string name, family, split;
  std::int64_t nodes = 0;       // 0: unknown
  std::int64_t configs = 0;     // measured rows of the graph
  std::int64_t rows = 0;        // of these, scored
  int fold = -1;                // its fold; -1: none
  std::uint64_t data_hash = 0;  // XXH3 over the scored rows and their run times; 0: unknown
  // [M] NaN if the member did not score the graph, or the metric is undefined.
  std::vector<double> members;
  // [M] whether the member was trained without this graph. Otherwise its score is in-fold: on a
  // graph it learned from.
  std::vector<bool> out_of_fold;
  // Score of the z_score combination of the members trained without the graph, or, if all were
  // trained on it, of all that scored it; NaN if there are none.
  double combined = 0;
  int combined_members = 0;
};

// The scores of a run's members on each scored graph.
struct MemberScores {
  std::string collection;
  std::string metric;          // primary_metric(collection)
  std::int64_t most_rows = 0;  // of a graph that were scored at most; 0: all
  // By which members are put together: what the scores' own file says, else the default.
  Combination combination;
  std::vector<PredictedMember> members;
  std::vector<GraphResult> graphs;          // sorted by split (train, valid, test) and name
  std::vector<OutOfFoldScore> out_of_fold;  // from scores.json only
  // XXH3 over the names and data of all graphs in this order; 0 if any graph's hash is unknown.
  std::uint64_t data_hash = 0;
  std::uint64_t parameter_hash = 0;  // of the weights used for scoring; 0: unknown, or several runs
  std::uint64_t init_hash = 0;       // PredictedRun::init_hash; 0 also of several runs
};

// "at most 100 rows", "all rows" for 0.
std::string rows_text(std::int64_t most_rows);

// [M] 1 of the members that were trained without the graph and scored all of it, else 0.
std::vector<double> held_out_weights(const PredictionEntry& graph, const PredictionRows& rows);

// Fills MemberScores::data_hash from those of its graphs.
void set_data_hash(MemberScores& scores);

// From predictions, which have every score; reads every graph once. Test graphs, which have no run
// times, are left out. Throws DataError, IoError.
MemberScores read_member_scores(const PredictionSource& predictions);

// From scores.json, which `train` writes also without predictions: the validation split. Members
// have their numbers; values that only prediction files have are unknown. Throws DataError that
// names the file.
MemberScores read_member_scores_json(const std::filesystem::path& path,
                                     const std::string& collection, int first_member);

// Only MemberScores::parameter_hash of it. Throws DataError that names the file.
std::uint64_t read_scored_parameters(const std::filesystem::path& path);

// The same as results of a sweep's run with these members. Without the file they have no scores.
std::vector<MemberResult> read_member_results(const std::filesystem::path& path,
                                              const std::string& collection, int first_member,
                                              int members);

}  // namespace tpudist
