#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "results/run_record.hpp"

namespace tpudist {

// What makes a row of a ScoreMatrix. A training is all members of one variant that share
// `seed.init` and `seed.order`, in one run or, where a sweep splits them, in several.
enum class MatrixRows {
  members,      // each member, on validation graphs that it never saw
  trainings,    // each training: on such graphs the mean of its members' scores
  together,     // each training: the score of its members' combined ranking (GraphResult::combined)
  out_of_fold,  // each training, on all graphs that lie in folds: the mean of the scores of those of
                // its members that hold the graph's fold out
};

// Something that was trained anew and scores all graphs of the matrix.
struct MatrixRow {
  std::string label;               // "demo seed 2 member 3"
  std::string variant;             // label of its variant
  std::uint64_t variant_hash = 0;  // 0: unknown
  std::int64_t init_seed = 0, order_seed = 0;
  // The numbers of its members. Of MatrixRows::out_of_fold [folds]: the first one that holds out the
  // fold.
  std::vector<int> members;
  int member_count = 1;  // of a training
};

struct MatrixGraph {
  std::string name, family, split;
  std::int64_t rows = 0;  // scored configurations
  int fold = -1;          // of MatrixRows::out_of_fold
};

// The primary metric of every row on every graph: complete, every score is finite.
struct ScoreMatrix {
  std::string collection, metric;
  std::int64_t most_rows = 0;  // of a graph that were scored at most; 0: all
  MatrixRows kind = MatrixRows::members;
  std::vector<MatrixRow> rows;              // [R]
  std::vector<MatrixGraph> graphs;          // [G] in the order of names
  std::vector<std::vector<double>> scores;  // [R][G]
  // What is not in it and why, one line each: runs without scores, members that failed, graphs on which the
  // metric is undefined, trainings that lack members.
  std::vector<std::string> left_out;

  // [R] means over graphs.
  std::vector<double> row_means() const;
  // [G] numbers of families, from 0 on, in the order in which they appear.
  std::vector<int> family_numbers() const;
};

// The matrix of these runs. Runs without scores, and members that failed, are left out; the rows may be
// none, and then the graphs are, too. Throws ConfigError that names two runs and what differs where runs
// cannot stand in one matrix: other collections, other rows of a graph, other run times, other folds, or a
// graph that only one of them scored.
ScoreMatrix score_matrix(std::span<const RunRecord> runs, MatrixRows kind);

}  // namespace tpudist
