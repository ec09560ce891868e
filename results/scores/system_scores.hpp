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

// The score of a training to compare. The score of a variant is always the mean of members; members
// together is printed beside that score, under its own name.
enum class TrainingScore {
  mean_of_members,   // on each graph, over its members that never saw it
  members_together,  // of the combined ranking; out of fold the same as mean_of_members
};
std::string_view name_of(TrainingScore score);  // "mean of members", "members together"

// The scores of one system: all trainings of one variant. Plain data.
struct SystemScores {
  // Rows are trainings; without such scores there is none. `left_out` also names graphs that the
  // other side lacks.
  ScoreMatrix scores;
  EvaluatedOn judged = EvaluatedOn::valid;
  TrainingScore score = TrainingScore::mean_of_members;
  int members = 0;        // most members of a training
  bool baseline = false;  // RunRecord::baseline
  // The scores of members together, if each training has several members, all known.
  std::optional<RunScoreTable> together;
  // If there is one training of several members: a column for each member. These scores say nothing
  // about other trainings.
  std::optional<RunScoreTable> members_of_one;
  // Notes on the trainings, one line each: some share `seed.order`, so they saw the same slates and
  // differ too little; members failed and do not count; one is on both sides with different
  // settings.
  std::vector<std::string> notes;
};

// One line if two trainings of the matrix share `seed.order` and therefore their slates, unless
// each member draws slates of its own.
std::vector<std::string> shared_orders(std::span<const RunRecord> runs, const ScoreMatrix& matrix);

// Which runs combine members by which rule (`--combine`); empty if there is only one rule.
std::string several_rules_text(std::span<const RunRecord> runs);

inline constexpr std::string_view kDrawnNodes =
    "graphs of more than data.reduce.max_nodes nodes are scored by one draw of their nodes";

// A note if a run scored one draw of nodes (data.reduce.max_nodes, unless `drawn: trained`): no
// interval here contains other draws. Else empty.
std::string drawn_nodes_text(std::span<const RunRecord> runs);

// The scores of one system. Throws ConfigError, which names the runs, when they are of several
// variants or collections, saw different data, or two are the same training (equal parameters).
SystemScores system_scores(std::span<const RunRecord> runs, EvaluatedOn judged,
                           TrainingScore score = TrainingScore::mean_of_members);

// Two systems on the graphs that both have scored. A system's `left_out` names the graphs that it
// lacks. system_pair throws ConfigError when a run is on both sides, when the systems used
// different data, and as system_scores and score_matrix.
struct SystemPair {
  SystemScores a, b;
};
SystemPair system_pair(std::span<const RunRecord> a, std::span<const RunRecord> b,
                       EvaluatedOn judged, TrainingScore score = TrainingScore::mean_of_members);

// Splits SWEEP:VARIANT into the folder and the variant, which is empty for other inputs.
std::pair<std::string, std::string> split_variant(const std::string& input);
// SWEEP:NUMBER of the two variants of a sweep. Throws ConfigError, which lists the variants, when
// there are not two or `input` names one of them; DataError as read_results.
std::vector<std::string> two_variants(const std::string& input);

// The runs of one system from a user's inputs: folders of runs, prediction files, folders of sweeps
// with one variant, and variants of a sweep as FOLDER:NUMBER or FOLDER:LABEL. Throws ConfigError
// when nothing has that name, and for a sweep of several variants, which the message lists;
// DataError as read_results.
std::vector<RunRecord> read_system(std::span<const std::string> inputs);

// Says that all runs of a sweep failed, or that none of them has ended; empty if one finished or
// they are of no sweep. `side`: "A" or "B"; empty: the runs are the whole sweep.
std::string no_end_text(std::span<const RunRecord> runs, const std::string& side);

// Why there is nothing to compare: what is left out on each side, in one line.
std::string missing_text(const SystemPair& pair);

}  // namespace tpudist
