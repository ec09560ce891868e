#pragma once

#include <span>
#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "results/scores/member_columns.hpp"
#include "results/scores/score_caveats.hpp"
#include "results/scores/score_table.hpp"
#include "statistics/ranking/combination.hpp"
#include "statistics/ranking/rejection.hpp"

namespace tpudist {

// How to make an ensemble. Fix all of these options before you look at scores.
struct JudgementOptions {
  Combination combination;
  bool keep_all = false;  // whether to combine rejected members (rejected_members), too
  int least_columns = 0;  // of fold_columns
};

// One graph: values of the collection's primary metric, NaN if undefined or without scores.
struct GraphEvaluation : PredictionEntry {
  std::string family;
  std::vector<double> columns = {};  // [C]
  double all = 0;                    // of the combination of all columns that have scores
  double kept = 0;                   // of the combination of columns that are not rejected
  // All metrics of the combination of `kept`; undefined if no column ranks the graph.
  GraphMetrics metrics = {};
  // How far members agree: Kendall tau between each column's ranking and the combined ranking of
  // the other columns, averaged over columns.
  double agreement = 0;
  bool suspicious = false;   // see kAgreement
  ScoreCaveats limits = {};  // of `kept`
};

// A graph is flagged if members agree (at least kAgreement) on a ranking that its run times
// contradict (Kendall tau below kContradiction): the run times may be corrupted. A flagged graph
// still counts.
inline constexpr double kAgreement = 0.6, kContradiction = 0.2;

// Graphs that are ranked by the same columns.
struct TableJudgement {
  std::string title;         // "training graphs, out of fold", "valid split"
  bool out_of_fold = false;  // whether a column has one member for each fold
  bool trained_on = false;   // members rank graphs of their training data: no interval holds
  std::vector<std::string> columns;
  std::vector<double> means;  // [C] mean over graphs of the primary metric
  // [C] the score of the combination minus the score without the column; NaN if the column is not
  // combined, or if no other column ranks one of the graphs.
  std::vector<double> gains;
  std::vector<double> weights;  // [C] weight in the combination: 1, or 0 if rejected
  std::vector<GraphEvaluation> graphs;
  // Scores of members together, means over graphs: `all` with the rejected members, `kept` with
  // only the members that are combined.
  double all = 0, kept = 0;
  // Mean of members: on a graph the mean over the columns of a training, then the mean over graphs,
  // then over trainings. Rejected members count too. NaN if no graph has a score.
  double mean_of_members = 0;
  // [T] for each combined training, the score of members together without that training.
  std::vector<double> without_training;
  std::vector<std::string> left_out;  // incomplete columns
  // If several collections were scored together: the same columns on the graphs of each collection,
  // sorted by `title`, the collection's name. Else empty.
  std::vector<TableJudgement> parts;
};

struct Judgement {
  std::string collection;
  Combination combination;
  bool keep_all = false;
  std::string recipes;              // several_recipes_text
  std::vector<std::string> names;   // [M]
  std::vector<bool> failed;         // [M] has no scores: never combined
  std::vector<Rejection> rejected;  // by ascending member
  std::vector<bool> used;           // [M] neither failed nor, unless `keep_all`, rejected
  std::vector<TableJudgement> tables;
};

// Judges and combines members. Rejects members separately over the graphs of each split. If members
// hold out folds, the splits that they train on are combined by columns, out of fold: on a graph,
// only the members that hold out that graph count. All other splits are combined by members. Reads
// every graph twice, one at a time. Throws ConfigError when every member is rejected, and what
// fold_columns throws.
Judgement judge(const PredictionSource& source, const JudgementOptions& options);

// The same without tables: which members count, and why the others do not. Reads every graph once,
// and ignores the run times of the split `test`.
Judgement judge_members(const PredictionSource& source, const JudgementOptions& options);

// Tables, rejected members with their reasons and flagged graphs, as lines.
std::string judgement_text(const Judgement& judgement);
// The same without lines for graphs: gains, fixed options, rejected members, flags.
std::string judgement_notes(const Judgement& judgement);
nlohmann::json judgement_json(const Judgement& judgement);

// An aligned table: score, ceiling with its interval, share of tied pairs, sampling deviation. Then
// the reasons why graphs have no ceiling. Empty for tile kernels, which have no such limits, and if
// no graph was measured and ranked.
std::string limits_text(std::span<const GraphEvaluation> graphs, std::string_view metric);

}  // namespace tpudist
