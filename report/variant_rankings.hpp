#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "ensemble/score_caveats.hpp"
#include "results/run_record.hpp"

namespace tpudist {

// How many of the fastest configurations a slowdown is told for.
inline constexpr std::int64_t kSlowdownCounts[] = {1, 2, 5, 10, 20, 50, 100};

// A graph as all members rank it together that were trained without it.
struct RankedGraph {
  std::string name, family, split;
  std::int64_t rows = 0;
  int members = 0;               // that rank it
  double score = 0;              // primary metric of their combination, by the rule of their files
  bool sized = false;            // whether it counts in VariantRankings::sizes and without
  ScoreCaveats limits;           // of the combination: noise ceiling, ties, sampling deviation
  std::vector<double> slowdown;  // [kSlowdownCounts] slowdown_at of the combination
  // Of at most 400 configurations, evenly taken by measured rank: rank / rows, measured and predicted.
  std::vector<double> measured, predicted;
};

// The score of ensembles of K of M members, over random subsets.
struct EnsembleSize {
  int members = 0;       // K
  int subsets = 0;       // that were drawn; one where K = M
  double mean = 0;       // over subsets, of the mean over graphs
  double deviation = 0;  // between subsets, divided by sqrt(1 - K / M); NaN beyond K = M / 2
};

struct VariantRankings {
  std::vector<RankedGraph> graphs;  // validation graphs, then those of folds; by names
  std::vector<EnsembleSize>
      sizes;  // on validation graphs that all members ranked; empty: fewer than two
  int sized_members = 0, sized_graphs = 0;
  // [sized_members] mean over the same graphs of the metric of all members but one.
  std::vector<double> without;
  std::vector<std::string> missing;  // runs without predictions, one line each
};

// Reads the predictions of all runs together, graph by graph. With `ceilings` noise ceilings are estimated,
// which takes most of the time. Throws ConfigError and DataError where they
// cannot be joined (JoinedPredictions).
VariantRankings rank_variant(std::span<const RunRecord> runs, bool ceilings);

}  // namespace tpudist
