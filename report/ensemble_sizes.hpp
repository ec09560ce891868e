#pragma once

#include <span>
#include <string>
#include <vector>

#include "report/variant_rankings.hpp"

namespace tpudist {

// The score of ensembles of random K of M members, for a list of K. Subsets are drawn once, by M alone,
// and scored graph by graph. All graphs must come with the same number of members; others do not count.
class EnsembleSizes {
 public:
  explicit EnsembleSizes(std::string collection) : collection_(std::move(collection)) {}

  // `scores` [M][r] are the averaged_form of the members' scores, `targets` [r]. Of large graphs 2,000 rows,
  // evenly taken, count. Returns whether the graph counts: not where the metric is undefined, or the
  // number of members is another one.
  bool add_graph(std::span<const std::vector<double>> scores, std::span<const double> targets);

  // Empty where there is no graph or only one member. Deviations are those between subsets of M members;
  // ensembles of K members of which no two share one differ more, by 1 / sqrt(1 - K / M), which is
  // divided out. Beyond K = M / 2 subsets overlap too much to tell.
  std::vector<EnsembleSize> result() const;
  // [members()] the mean over graphs of all members but one; empty as `result`.
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
