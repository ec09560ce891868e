#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "results/scores/run_record.hpp"
#include "statistics/intervals/run_score_table.hpp"

namespace tpudist {

// The meaning of a row of a ScoreMatrix. A training is all members of one variant that share
// `seed.init` and `seed.order`, in one run or, if a sweep splits them, in several.
enum class MatrixRows {
  members,      // a member, on validation graphs that it never saw
  trainings,    // a training: on these graphs the mean of its members' scores
  together,     // a training: the score of its members' combined ranking (GraphResult::combined)
  out_of_fold,  // a training, on all graphs in folds: the mean score of its members that hold out
                // the graph's fold
};

// The primary metric of every row on every graph. As a RunScoreTable: the rows are its runs, two
// graphs of the same name in different splits are called "NAME (SPLIT)", and only
// MatrixRows::out_of_fold has folds.
struct ScoreMatrix : RunScoreTable {
  // A member or training that scores all graphs of the matrix.
  struct Row {
    std::string label;               // "demo seed 2 member 3"
    std::string variant;             // label of its variant
    std::uint64_t variant_hash = 0;  // recipe_hash; 0: unknown
    std::int64_t init_seed = 0, order_seed = 0;
    // The numbers of the row's members. For MatrixRows::out_of_fold [folds]: the first member that
    // holds out each fold.
    std::vector<int> members;
    int member_count = 1;  // of a training
  };

  std::string collection, metric;
  std::int64_t most_rows = 0;  // largest number of scored rows of a graph; 0: all
  MatrixRows kind = MatrixRows::members;
  std::vector<Row> rows;                 // [R]
  std::vector<PredictionEntry> entries;  // [G] the graphs, sorted by name, then split
  // What the matrix leaves out and why, one line each: runs without scores, failed members, graphs
  // with an undefined metric, trainings that lack members.
  std::vector<std::string> left_out;
  // If rows are trainings. `members`: the number of all members, also in trainings that are left
  // out. `failed_members`: how many of them failed or rank nothing, and so count in no score.
  // `failed_in`: labels of the trainings of failed members.
  int members = 0, failed_members = 0;
  std::vector<std::string> failed_in;

  // "2 of 6 members failed and do not count (demo seed 1 and 1 more): ..."; empty if none failed.
  std::string failed_text() const;
};

// The matrix of these runs. Leaves out runs without scores and failed members; without rows there
// are no graphs either. Throws ConfigError, which names two runs and their difference, when the two
// cannot be in one matrix: their collections or folds differ, or the rows or run times of a graph,
// or only one of them scored a graph.
ScoreMatrix score_matrix(std::span<const RunRecord> runs, MatrixRows kind);

// The rows of a matrix of members that belong to one training.
ScoreMatrix members_of(ScoreMatrix members, const ScoreMatrix::Row& training);

}  // namespace tpudist
