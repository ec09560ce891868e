#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "results/scores/run_record.hpp"
#include "results/scores/score_caveats.hpp"

namespace tpudist {

// The score of ensembles of K of M members, over random subsets.
struct EnsembleSize {
  int members = 0;       // K
  int subsets = 0;       // number of drawn subsets; one if K = M
  double mean = 0;       // over subsets, of the mean over graphs
  double deviation = 0;  // between subsets, divided by sqrt(1 - K / M); NaN beyond K = M / 2
};

// The score of ensembles of random K of M members, for several K. Subsets are drawn once, depending
// only on M, and scored graph by graph. All graphs must have the same number of members; others are
// ignored.
class EnsembleSizes {
 public:
  explicit EnsembleSizes(std::string collection) : collection_(std::move(collection)) {}

  // `scores` [M][r] are normalised scores of the members, `targets` [r]. Of large graphs 2,000
  // rows, evenly spaced, are used. Returns whether the graph counts: false if the metric is
  // undefined, or the number of members differs.
  bool add_graph(std::span<const std::vector<double>> scores, std::span<const double> targets);

  // Empty without graphs or with only one member. Deviations are between subsets of the M members.
  // Independent ensembles of K members would differ more, by 1 / sqrt(1 - K / M); the deviation is
  // divided by sqrt(1 - K / M) to correct for it. Beyond K = M / 2 subsets overlap too much.
  std::vector<EnsembleSize> result() const;
  // [members()] the mean over graphs of all members but one; empty under the same conditions as
  // `result`.
  std::vector<double> without() const;
  int members() const { return members_; }
  int graphs() const { return graphs_; }

 private:
  struct Subset {
    std::size_t size = 0;  // index into sizes_
    std::vector<int> members;
    double sum = 0;  // of the metric over graphs
  };
  void draw_subsets();

  std::string collection_;
  int members_ = 0, graphs_ = 0;
  std::vector<int> sizes_;
  std::vector<Subset> subsets_;
  std::vector<double> without_;  // [members_] sums over graphs
};

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
