#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "results/run_record.hpp"
#include "results/score_matrix.hpp"
#include "statistics/run_scores.hpp"

namespace tpudist {

// The graphs that a system is judged on.
enum class EvaluatedOn {
  valid,        // validation graphs that no member trained on
  out_of_fold,  // all graphs that lie in folds, each by members that never saw it
};

// Which score of a training is compared. The score of a variant is the mean of members wherever one
// is printed; members together is printed beside it, and named so.
enum class TrainingScore {
  mean_of_members,   // on each graph, of its members that never saw it
  members_together,  // of their combined ranking; out of fold as mean_of_members
};
std::string_view name_of(TrainingScore score);  // "mean of members", "members together"

// The scores of one system: all trainings of one variant. Plain data.
struct SystemScores {
  std::string collection, metric;
  EvaluatedOn judged = EvaluatedOn::valid;
  TrainingScore score = TrainingScore::mean_of_members;
  std::vector<std::string> labels;  // [R] of the trainings
  int members = 0;                  // of a training, at most
  RunScores scores;  // columns are trainings, graphs by name; none where nothing has such scores
  // The same by members together, where each training has several members and is known so.
  std::optional<RunScores> together;
  // Where there is one training of several members: a column for each of them. It says nothing of
  // other trainings.
  std::optional<RunScores> members_of_one;
  std::vector<std::string> left_out;  // of ScoreMatrix
  // What to know of the trainings, a line each: that some share `seed.order`, so that they saw the
  // same slates and differ too little; that one stands on both sides by other settings.
  std::vector<std::string> notes;
};

// A matrix as statistics/ takes it: its rows are the runs.
RunScores run_scores(const ScoreMatrix& matrix);

// Which runs put their members together by which rule (`--combine`), where they are several rules;
// else empty.
std::string several_rules_text(std::span<const RunRecord> runs);

// Of one system. Throws ConfigError where runs are of several variants or collections, saw other
// data, or two are one and the same training (equal parameters), and says which.
SystemScores system_scores(std::span<const RunRecord> runs, EvaluatedOn judged,
                           TrainingScore score = TrainingScore::mean_of_members);

// Two systems on the graphs that both have scores of. A graph that one of them lacks is named in its
// `left_out`. Throws ConfigError where a run is on both sides, and as above and as score_matrix,
// where the systems saw other data.
struct SystemPair {
  SystemScores a, b;
};
SystemPair system_pair(std::span<const RunRecord> a, std::span<const RunRecord> b,
                       EvaluatedOn judged, TrainingScore score = TrainingScore::mean_of_members);

}  // namespace tpudist
