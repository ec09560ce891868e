#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "results/scores/member_columns.hpp"
#include "results/scores/score_caveats.hpp"
#include "results/scores/score_table.hpp"
#include "statistics/ranking/combination.hpp"
#include "statistics/ranking/member_selection.hpp"
#include "statistics/ranking/rejection.hpp"

namespace tpudist {

// How to make an ensemble. All of it is fixed before anybody looks at scores.
struct JudgementOptions {
  Combination combination;
  bool keep_all = false;  // whether rejected members (rejected_members) are combined all the same
  bool greedy = false;    // whether members are chosen (select_members)
  int least_columns = 0;  // of fold_columns
};

// One graph: values of the collection's primary metric, NaN if undefined or without scores.
struct GraphEvaluation {
  std::string name, family;
  std::int64_t rows = 0;
  std::vector<double> columns;  // [C]
  double all = 0;               // of the combination of all columns that have scores
  double kept = 0;              // of the combination that is taken: not rejected, and chosen
  GraphMetrics metrics;         // all metrics of that combination; undefined where nobody ranks
  // How far members agree: Kendall tau between each column's ranking and the combined one of the
  // others, averaged over columns.
  double agreement = 0;
  bool suspicious = false;  // see kAgreement
  ScoreCaveats limits;      // of `kept`
};

// A graph is flagged if members agree (at least kAgreement) on a ranking that its run times
// contradict (Kendall tau below kContradiction): the run times may be corrupted. It is still used.
inline constexpr double kAgreement = 0.6, kContradiction = 0.2;

// Graphs that are ranked by the same columns.
struct TableJudgement {
  std::string title;         // "training graphs, out of fold", "valid split"
  bool out_of_fold = false;  // whether a column has one member for each fold
  bool trained_on = false;   // members rank graphs that they were trained on: no interval holds
  std::vector<std::string> columns;
  std::vector<double> means;  // [C] mean over graphs of the primary metric
  // [C] the value of a column: the score of the combination minus that without the column; NaN for
  // columns that are not combined, and where a graph is left without any.
  std::vector<double> gains;
  std::vector<double> weights;  // [C] weight in the combination; 0 if rejected or not selected
  std::vector<GraphEvaluation> graphs;
  // Members together, means over graphs: `all` with the rejected ones, `kept` as combined.
  double all = 0, kept = 0;
  // Mean of members: on a graph the mean over the columns of a training, then the mean over graphs,
  // then over trainings. Rejected members count too. NaN if no graph has a score.
  double mean_of_members = 0;
  // [T] members together without one of the combined trainings.
  std::vector<double> without_training;
  std::optional<MemberSelection> selection;
  std::vector<std::string> left_out;  // incomplete columns
  // Where several collections were scored together the same columns on the graphs of each, `title` its
  // name and sorted by it; else empty.
  std::vector<TableJudgement> parts;

  bool takes_selection() const { return selection && selection->takes_selection; }
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

// Judges and combines members. It rejects members separately over the graphs of each split. On
// splits that members train on, if members hold folds out and there are such predictions, columns
// are combined out of fold: only scores of members that hold the graph out count, unless none holds
// anything out. On the other splits members are combined. If a selection is used, scores, gains and
// intervals refer to it. Reads every graph twice, one at a time, and once more if a selection is
// used; `greedy` keeps all in memory. Throws ConfigError when every member is rejected, and what
// fold_columns and select_members throw.
Judgement judge(const PredictionSource& source, const JudgementOptions& options);

// The same without tables and without reading graphs twice: which members count, and why others do
// not. Run times of the split `test` are not looked at.
Judgement judge_members(const PredictionSource& source, const JudgementOptions& options);

// Weights [M] for graphs outside of folds: those of the last table whose columns are members.
std::vector<double> member_weights(const Judgement& judgement);

// Tables, rejected members with their reasons, the selection and flagged graphs, as lines.
std::string judgement_text(const Judgement& judgement);
// The same without graphs: gains of members, the fixed options, rejected members, selection, flags.
std::string judgement_notes(const Judgement& judgement);
nlohmann::json judgement_json(const Judgement& judgement);

}  // namespace tpudist
