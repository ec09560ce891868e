#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "ensemble/columns.hpp"
#include "ensemble/prediction_source.hpp"
#include "ensemble/score_caveats.hpp"
#include "statistics/combination.hpp"
#include "statistics/member_selection.hpp"
#include "statistics/rejection.hpp"
#include "train/scores/score_table.hpp"

namespace tpudist {

// How an ensemble is made. All of it is fixed before anybody looks at scores.
struct JudgementOptions {
  Combination combination;
  bool keep_all = false;  // whether members that RejectionRule rejects are combined all the same
  bool greedy = false;    // whether members are chosen (select_members)
  int least_columns = 0;  // of fold_columns
  bool keep_rankings = false;  // GraphEvaluation::ranking
};

// One graph: the primary metric of the collection, NaN where it is undefined or has no scores.
struct GraphEvaluation {
  std::string name, family;
  std::int64_t rows = 0;
  std::vector<double> columns;  // [C]
  double all = 0;               // of the combination of all columns that have scores
  double kept = 0;              // of the combination that is taken: not rejected, and chosen
  GraphMetrics metrics;         // all metrics of that combination; undefined where nobody ranks
  std::vector<double> ranking;  // [r] its scores, where they are asked for; empty: none
  // How far members agree: Kendall tau between each column's ranking and the combined one, averaged.
  double agreement = 0;
  bool suspicious = false;  // see kAgreement
  ScoreCaveats limits;      // of `kept`
};

// A graph is flagged where members agree (at least kAgreement) on a ranking that its run times contradict
// (Kendall tau below kContradiction): they may have been corrupted. It is never left out for that.
inline constexpr double kAgreement = 0.6, kContradiction = 0.2;

// Graphs that the same columns rank.
struct TableJudgement {
  std::string title;         // "training graphs, out of fold", "valid split"
  bool out_of_fold = false;  // whether a column is one member for each fold
  std::vector<std::string> columns;
  std::vector<double> means;  // [C] over graphs, of the primary metric
  // [C] what a column is worth: the score of what is taken minus that without it; NaN of columns
  // that are not taken, and where there is but one.
  std::vector<double> gains;
  std::vector<double> weights;  // [C] with which they are taken; 0 where rejected or not chosen
  std::vector<GraphEvaluation> graphs;
  // Of members together, means over graphs: with those rejected, and of what is taken.
  double all = 0, kept = 0;
  // Mean of members: on a graph the mean over the columns of a training, then the mean over graphs,
  // then over trainings. Rejected members count, too. NaN where no graph has a score.
  double mean_of_members = 0;
  // [T] of members together without one training of those that are taken.
  std::vector<double> without_training;
  std::optional<MemberSelection> selection;
  std::vector<std::string> left_out;  // incomplete columns

  bool takes_selection() const { return selection && selection->takes_selection; }
};

struct Judgement {
  std::string collection;
  Combination combination;
  bool keep_all = false;
  std::vector<std::string> names;   // [M]
  std::vector<bool> failed;         // [M] without scores: never combined
  std::vector<Rejection> rejected;  // by rising member
  std::vector<bool> used;           // [M] not failed, and not rejected unless `keep_all`
  std::vector<TableJudgement> tables;
};

// Judges and combines members: rejects them over the graphs of each split by themselves, then combines
// columns out of fold on the graphs of splits that members train on (where members hold folds out and
// there are such predictions) and members on the graphs of the other splits. Of the former only scores of
// members that hold it out count, unless none holds anything out. A selection that is taken is what
// scores, gains and intervals speak of. Reads every graph twice, one at a time, and once more where a
// selection is taken; `greedy` holds all. Throws ConfigError where every member is rejected, and what
// fold_columns and select_members throw.
Judgement judge(const PredictionSource& source, const JudgementOptions& options);

// Weights [M] for the graphs outside of folds: those of the last table's columns where members are
// columns.
std::vector<double> member_weights(const Judgement& judgement);

// Tables, rejected members with their reasons, the selection and flagged graphs, as lines.
std::string judgement_text(const Judgement& judgement);
// Without the graphs: gains of members, what was fixed beforehand, who was rejected, selection, flags.
std::string judgement_notes(const Judgement& judgement);
nlohmann::json judgement_json(const Judgement& judgement);

}  // namespace tpudist
