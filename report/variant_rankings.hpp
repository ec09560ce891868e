#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "ensemble/score_caveats.hpp"
#include "results/run_record.hpp"

namespace tpudist {

// The k for which slowdowns are shown.
inline constexpr std::int64_t kSlowdownCounts[] = {1, 2, 5, 10, 20, 50, 100};

// A graph as ranked by all members together that were trained without it.
struct RankedGraph {
  std::string name, family, split;
  std::int64_t rows = 0;
  int members = 0;               // number of these members
  double score = 0;              // primary metric of their combination (z_score)
  bool sized = false;            // whether it counts in VariantRankings::sizes and without
  ScoreCaveats limits;           // of the combination: noise ceiling, ties, sampling deviation
  std::vector<double> slowdown;  // [kSlowdownCounts] slowdown_at of the combination
  // For at most 400 configurations, evenly spaced by measured rank: rank / rows, measured and
  // predicted.
  std::vector<double> measured, predicted;
};

// The score of ensembles of K of M members, over random subsets.
struct EnsembleSize {
  int members = 0;       // K
  int subsets = 0;       // number of drawn subsets; one if K = M
  double mean = 0;       // over subsets, of the mean over graphs
  double deviation = 0;  // between subsets, divided by sqrt(1 - K / M); NaN beyond K = M / 2
};

struct VariantRankings {
  std::vector<RankedGraph> graphs;  // validation graphs, then graphs in folds; each sorted by name
  std::vector<EnsembleSize>
      sizes;  // on validation graphs that all members ranked; empty for fewer than two members
  int sized_members = 0, sized_graphs = 0;
  // [sized_members] the mean over the same graphs for all members but one.
  std::vector<double> without;
  std::vector<std::string> missing;  // runs without predictions, one line each
};

// Reads the predictions of all runs together, graph by graph. `ceilings`: whether to estimate noise
// ceilings, which takes most of the time. Throws ConfigError and DataError when they cannot be
// joined (JoinedPredictions).
VariantRankings rank_variant(std::span<const RunRecord> runs, bool ceilings);

}  // namespace tpudist
