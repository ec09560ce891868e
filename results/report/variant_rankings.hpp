#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "results/scores/run_record.hpp"
#include "results/scores/score_caveats.hpp"
#include "results/scores/slowdowns.hpp"

namespace tpudist {

// The score of ensembles of K random members of M, for several K. The subsets depend only on M and
// are scored graph by graph. Graphs with another number of members than the first are ignored.
class EnsembleSizes {
 public:
  // The score of ensembles of K of M members, over random subsets.
  struct Size {
    int members = 0;       // K
    int subsets = 0;       // number of drawn subsets; one if K = M
    double mean = 0;       // over subsets, of the mean over graphs
    double deviation = 0;  // between subsets, divided by sqrt(1 - K / M); NaN beyond K = M / 2
  };

  explicit EnsembleSizes(std::string collection) : collection_(std::move(collection)) {}

  // `scores` [M][r] are normalised scores of the members, `targets` [r]. Uses 2,000 evenly spaced
  // rows of a larger graph. Returns whether the graph counts: false if the metric is undefined, or
  // the number of members differs.
  bool add_graph(std::span<const std::vector<double>> scores, std::span<const double> targets);

  // Empty without graphs or with only one member. Subsets of the M members overlap, and differ less
  // than independent ensembles of K members. To correct this, the deviation between subsets is
  // divided by sqrt(1 - K / M). Beyond K = M / 2 subsets overlap too much.
  std::vector<Size> result() const;
  // [members()] the mean score over graphs without each member; empty when `result` is.
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

// A graph, ranked by all members together that were trained without the graph.
struct RankedGraph : PredictionEntry {
  std::string family;
  int members = 0;                // number of these members
  double score = 0;               // primary metric of their combination by the recorded rule
  bool sized = false;             // whether the graph counts in VariantRankings::sizes, `without`
  ScoreCaveats limits = {};       // of the combination: noise ceiling, ties, sampling deviation
  GraphSlowdowns slowdowns = {};  // of the combination
};

struct VariantRankings {
  std::vector<RankedGraph> graphs;  // validation graphs, then graphs in folds; each sorted by name
  std::vector<EnsembleSizes::Size>
      sizes;  // on validation graphs that all members ranked; empty for fewer than two members
  int sized_members = 0, sized_graphs = 0;
  // [sized_members] the mean over the same graphs without each member.
  std::vector<double> without;
  std::vector<std::string> missing;  // runs without predictions, one line each
};

// Reads the predictions of all runs together, graph by graph. `ceilings`: whether to estimate noise
// ceilings, which takes most of the time. Throws ConfigError and DataError when the predictions
// cannot be joined (JoinedPredictions).
VariantRankings rank_variant(std::span<const RunRecord> runs, bool ceilings);

}  // namespace tpudist
