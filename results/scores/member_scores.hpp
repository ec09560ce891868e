#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "results/records/predictions_file.hpp"
#include "results/records/run_result.hpp"

namespace tpudist {

// A graph with the scores of a run's members: the collection's primary metric (Kendall tau-b or
// tile score). A member that does not hold the graph out learned from it: its score is in-fold.
struct GraphResult : PredictionEntry {  // `nodes` 0: unknown
  std::string family;
  std::uint64_t data_hash = 0;  // XXH3 over the scored rows and their run times; 0: unknown
  // [M] NaN if the member did not score the graph, or the metric is undefined.
  std::vector<double> members;
  // Score of the members that were trained without the graph, combined by
  // MemberScores::combination; if there are none, of all members that scored the graph; NaN if no
  // member did.
  double combined = 0;
  int combined_members = 0;
};

// The scores of a run's members on each scored graph.
struct MemberScores {
  // How well a member ranks the graphs of the fold that it never saw.
  struct OutOfFold {
    int number = 0, fold = -1;  // of the member
    int graphs = 0;             // graphs of its fold with a defined metric
    double score = 0;  // mean of the primary metric over these graphs; NaN if there are none
  };

  std::string collection;
  std::string metric;          // primary_metric(collection)
  std::int64_t most_rows = 0;  // most scored rows of a graph; 0: all
  // The rule that combines members, as the scores' file records it; else the default.
  Combination combination;
  std::vector<PredictedMember> members;
  std::vector<GraphResult> graphs;     // sorted by split (train, valid, test) and name
  std::vector<OutOfFold> out_of_fold;  // from scores.json only
  // XXH3 over the names and data of all graphs in this order; 0 if any graph's hash is unknown.
  std::uint64_t data_hash = 0;
  std::uint64_t parameter_hash = 0;  // of the weights used for scoring; 0: unknown, or several runs
  std::uint64_t init_hash = 0;       // PredictedRun::init_hash; 0 also of several runs
};

// "at most 100 rows", "all rows" for 0.
std::string rows_text(std::int64_t most_rows);

// [M] 1 for a member that was trained without the graph and has only finite scores, else 0.
std::vector<double> held_out_weights(const PredictionEntry& graph, const PredictionRows& rows);
// Visits each graph that is in no test split, with these weights; 0 for members that do not take part.
// `takes_part` [M]; empty: all do.
using VisitUnseen = std::function<void(const PredictionEntry& graph, const PredictionRows& rows,
                                       const std::vector<double>& weights)>;
void each_unseen_graph(const PredictionSource& predictions, const VisitUnseen& visit,
                       const std::vector<bool>& takes_part = {});

// Reads predictions, which have every score, each graph once. Leaves out test graphs, which have no
// run times. Throws DataError, IoError.
MemberScores read_member_scores(const PredictionSource& predictions);

// Reads scores.json, which `train` writes also without predictions: the validation split. Values
// that only prediction files have are unknown. Throws DataError, which names the file.
MemberScores read_member_scores_json(const std::filesystem::path& path,
                                     const std::string& collection, int first_member);

// Reads only MemberScores::parameter_hash from scores.json. Throws DataError, which names the file.
std::uint64_t read_scored_parameters(const std::filesystem::path& path);

// Reads scores.json as the results of a sweep's run with these members; no scores without the file.
std::vector<RunResult::Member> read_member_results(const std::filesystem::path& path,
                                                   const std::string& collection, int first_member,
                                                   int members);

// The scores of the members that hold out a fold, in the order of members. A failed member has no
// graph. Reads every graph in a fold.
std::vector<MemberScores::OutOfFold> out_of_fold_scores(const PredictionsFile& predictions);

// {"metric": "kendall_tau", "most_rows": 0, "members": [{"number", "fold", "graphs", "score"}]}.
// NaN becomes null.
nlohmann::json out_of_fold_json(const PredictionsHeader& header,
                                const std::vector<MemberScores::OutOfFold>& scores);

}  // namespace tpudist
