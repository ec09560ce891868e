#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "results/run_record.hpp"

namespace tpudist {

// What makes a row of a ScoreMatrix.
enum class MatrixRows {
  members,  // each member, on validation graphs that it never saw
  runs,     // each run: all its members together, on such graphs
  out_of_fold,  // the members of one variant and seed that hold out one fold each, on all graphs that lie
                // in folds: each graph is scored by the member that never saw it
};

// Something that was trained anew and scores all graphs of the matrix.
struct MatrixRow {
  std::string label;               // "demo seed 2 member 3"
  std::string variant;             // label of its variant
  std::uint64_t variant_hash = 0;  // 0: unknown
  std::int64_t init_seed = 0, order_seed = 0;
  // [folds] of MatrixRows::out_of_fold: the member that holds out the fold; else a single one, -1 for
  // all of a run.
  std::vector<int> members;
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
  // metric is undefined, columns that lack the member of a fold.
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
