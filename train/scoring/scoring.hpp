#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "data/loading/dataset.hpp"
#include "models/network.hpp"
#include "statistics/combination.hpp"
#include "train/experiment/context.hpp"
#include "train/experiment/scoring_block.hpp"
#include "train/units/unit_builder.hpp"

namespace tpudist {

// Scores of configurations of one graph by members; a larger score means slower.
struct ScoresByMember {
  int graph = 0;                   // index in the dataset
  std::vector<std::int64_t> rows;  // [c] scored rows, ascending
  // [M][c], empty for a member that did not score the graph
  std::vector<std::vector<double>> scores;
};

struct ScoringOptions {
  ScoringBlock block;
  std::int64_t most_rows = 0;  // most rows of a graph, drawn by a fixed permutation; 0 = all
};

// Consecutive graphs of a dataset.
struct GraphRange {
  int first = 0, count = 0;
};

// Cuts a dataset into ranges of graphs to score one after another, so that memory is bounded: at
// least one graph each, then as many as have `most` scores (rows x members) together.
std::vector<GraphRange> scoring_ranges(const Dataset& dataset, int members, std::int64_t most_rows,
                                       std::int64_t most = std::int64_t{1} << 21);

// The number of scores (rows x members) of all graphs of a dataset: the total of a progress bar
// that `score_graphs` advances.
std::int64_t total_scores(const Dataset& dataset, int members, std::int64_t most_rows);

// Scores rows of some of the dataset's graphs with members 0 .. members-1 of `flat` [M, P]. The
// work is distributed over ranks and threads by its estimated cost. Equal configurations are scored
// once, or once in each permutation of `options.block.slates`. Collective; every rank gets all
// predictions. The caller starts and finishes context.progress, which advances by the scores of all
// ranks.
std::vector<ScoresByMember> score_graphs(const Network& network, std::span<const float> flat,
                                         int members, const Dataset& dataset, GraphRange graphs,
                                         const UnitBuilder& units, const ScoringOptions& options,
                                         JobContext& context);

// One score per configuration from the members that scored, with their weights [M]; 0 if no such
// member has weight. [c]
std::vector<double> combined_scores(const ScoresByMember& prediction,
                                    const std::vector<double>& weights,
                                    const Combination& combination);

}  // namespace tpudist
