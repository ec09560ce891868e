#pragma once

#include <span>
#include <string>
#include <vector>

#include "report/variant_rankings.hpp"

namespace tpudist {

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

}  // namespace tpudist
