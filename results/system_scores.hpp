#pragma once

#include <span>
#include <string>
#include <vector>

#include "results/run_record.hpp"
#include "results/score_matrix.hpp"
#include "statistics/run_scores.hpp"

namespace tpudist {

// The graphs that a system is judged on.
enum class JudgedGraphs {
  valid,        // validation graphs that no member trained on
  out_of_fold,  // all graphs that lie in folds, each by members that never saw it
};

// What counts as one run of a system.
enum class RunUnit {
  automatic,  // runs, or single members where a system has one run of several members
  runs,       // the members of a run together, as the ensemble that they are
  members,    // each member by itself
};

// The scores of one system: all runs of one variant. Plain data.
struct SystemScores {
  std::string collection, metric;
  JudgedGraphs judged = JudgedGraphs::valid;
  // What a column of `scores` is: runs or members; out of fold the members of one seed that hold
  // out one fold each.
  MatrixRows unit = MatrixRows::runs;
  std::vector<std::string> labels;    // [R] of the runs
  RunScores scores;                   // graphs by name; of none where no run has such scores
  std::vector<std::string> left_out;  // of ScoreMatrix
};

// A matrix as statistics/ takes it: its rows are the runs.
RunScores run_scores(const ScoreMatrix& matrix);

// Of one system. Throws ConfigError where runs are of several variants or collections, saw other
// data, or two are one and the same training (equal parameters), and says which.
SystemScores system_scores(std::span<const RunRecord> runs, JudgedGraphs judged, RunUnit unit);

// Two systems on the graphs that both have scores of, with runs of the same kind. A graph that one
// of them lacks is named in its `left_out`. Throws ConfigError where a run is on both sides, and as
// above and as score_matrix, where the systems saw other data.
struct SystemPair {
  SystemScores a, b;
};
SystemPair system_pair(std::span<const RunRecord> a, std::span<const RunRecord> b,
                       JudgedGraphs judged, RunUnit unit);

}  // namespace tpudist
