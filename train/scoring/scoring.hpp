#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "data/loading/dataset.hpp"
#include "dist/health/job_context.hpp"
#include "models/network/network.hpp"
#include "statistics/ranking/combination.hpp"
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
  // Largest number of rows of a graph, drawn by a fixed permutation; 0 = all.
  std::int64_t most_rows = 0;
  std::uint64_t draw = 0;  // number of the draw of nodes, if `data.reduce` draws nodes
  // Of a slate's graph, for all members of the call (score_slate); null: nothing is kept.
  KeptRows* kept = nullptr;
};

// Consecutive graphs of a dataset.
struct GraphRange {
  int first = 0, count = 0;
};

// Cuts graphs into ranges that are scored one after another, so that memory stays bounded. A range
// has at least one graph, and more only as long as all its graphs have at most `most` scores
// together. `scores`: of each graph, rows x members.
std::vector<GraphRange> scoring_ranges(std::span<const std::int64_t> scores,
                                       std::int64_t most = std::int64_t{1} << 21);

// Scores rows of some of the dataset's graphs with members 0 .. members-1 of `flat` [M, P]. Spreads
// the work over ranks and threads by estimated cost. Scores equal configurations only once, or, if
// `options.block.slates` wants slates, once in each of its permutations of the configurations.
// Collective; every rank gets all predictions. The caller starts and finishes context.progress,
// which advances by the scores of all ranks.
std::vector<ScoresByMember> score_graphs(const Network& network, std::span<const float> flat,
                                         int members, const Dataset& dataset, GraphRange graphs,
                                         const UnitBuilder& units, const ScoringOptions& options,
                                         JobContext& context);

// [members][K] the scores of a slate that may have configurations that its graph has not, with the
// bits of score_graphs. Not collective. Only if the network has no kept_channels(), a configuration's
// score depends on the rest of its block by rounding. A device copies weights that are not placed.
std::vector<std::vector<double>> score_slate(const Network& network, const Parameters& parameters,
                                             int members, const UnitBuilder& units,
                                             const Slate& slate, const ScoringOptions& options);

// [c] One score per configuration, combined from the members that scored, with weights [M]; 0 if no
// such member has a weight above 0.
std::vector<double> combined_scores(const ScoresByMember& prediction,
                                    const std::vector<double>& weights,
                                    const Combination& combination);

}  // namespace tpudist
