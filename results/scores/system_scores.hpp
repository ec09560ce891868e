#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "results/scores/run_record.hpp"
#include "results/scores/score_matrix.hpp"
#include "statistics/intervals/run_score_table.hpp"

namespace tpudist {

// The graphs on which a system is judged.
enum class EvaluatedOn {
  valid,        // validation graphs that no member trained on
  out_of_fold,  // all graphs in folds, each by members that never saw it
};

// Which score of a training is compared. Everywhere, the score of a variant is the mean of members;
// members together is printed beside it, under that name.
enum class TrainingScore {
  mean_of_members,   // on each graph, over its members that never saw it
  members_together,  // of their combined ranking; out of fold the same as mean_of_members
};
std::string_view name_of(TrainingScore score);  // "mean of members", "members together"

// The scores of one system: all trainings of one variant. Plain data.
struct SystemScores {
  std::string collection, metric;
  EvaluatedOn judged = EvaluatedOn::valid;
  TrainingScore score = TrainingScore::mean_of_members;
  std::vector<std::string> labels;  // [R] of the trainings
  int members = 0;                  // of a training, at most
  bool baseline = false;            // RunRecord::baseline
  std::int64_t most_rows = 0;       // most scored rows of a graph; 0: all
  RunScoreTable scores;  // columns are trainings, graphs sorted by name; empty without such scores
  // The same by members together, if each training has several members, all known.
  std::optional<RunScoreTable> together;
  // If there is one training of several members: a column for each member. It says nothing about
  // other trainings.
  std::optional<RunScoreTable> members_of_one;
  std::vector<std::string> left_out;  // of ScoreMatrix
  // Notes on the trainings, one line each: some share `seed.order`, so they saw the same slates and
  // differ too little; members failed and do not count; one is on
  // both sides with different settings.
  std::vector<std::string> notes;
};

// A matrix in the form of statistics/: its rows are the runs.
RunScoreTable run_score_table(const ScoreMatrix& matrix);

// One line where two trainings of the matrix share `seed.order` and so their slates, unless each
// member draws its own.
std::vector<std::string> shared_orders(std::span<const RunRecord> runs, const ScoreMatrix& matrix);

// Which runs put their members together by which rule (`--combine`), where they are several rules;
// else empty.
std::string several_rules_text(std::span<const RunRecord> runs);

inline constexpr std::string_view kDrawnNodes =
    "graphs of more than data.reduce.max_nodes nodes are scored by one draw of their nodes";

// A note where a run scored one draw of nodes (data.reduce.max_nodes, unless `drawn: trained`): no
// interval here contains other draws. Empty where none did.
std::string drawn_nodes_text(std::span<const RunRecord> runs);

// Of one system. Throws ConfigError where runs are of several variants or collections, saw other
// data, or two are one and the same training (equal parameters), and says which.
SystemScores system_scores(std::span<const RunRecord> runs, EvaluatedOn judged,
                           TrainingScore score = TrainingScore::mean_of_members);

// Two systems on the graphs that both have scored. A graph that one of them lacks is named in its
// `left_out`. Throws ConfigError when a run is on both sides, when the systems used different data,
// and as above and score_matrix.
struct SystemPair {
  SystemScores a, b;
};
SystemPair system_pair(std::span<const RunRecord> a, std::span<const RunRecord> b,
                       EvaluatedOn judged, TrainingScore score = TrainingScore::mean_of_members);

// SWEEP:VARIANT as the folder and the variant; of other inputs the variant is empty.
std::pair<std::string, std::string> split_variant(const std::string& input);
// SWEEP:NUMBER of the two variants of a sweep. Throws ConfigError, with all of them, where there
// are not two; DataError as read_results.
std::vector<std::string> two_variants(const std::string& sweep);

// The runs of one system from a user's inputs: folders of runs, prediction files, folders of sweeps
// with one variant, and variants of a sweep as FOLDER:NUMBER or FOLDER:LABEL. Throws ConfigError
// when nothing has that name, and for a sweep of several variants, which it lists; DataError as
// read_results.
std::vector<RunRecord> read_system(std::span<const std::string> inputs);

// Why there is nothing to compare: what is left out on each side, in one line.
std::string missing_text(const SystemPair& pair);

}  // namespace tpudist
