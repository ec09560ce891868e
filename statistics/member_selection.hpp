#pragma once

#include <functional>
#include <span>
#include <string>
#include <vector>

namespace tpudist {

// What members say of one graph, and what was measured.
struct SelectionGraph {
  std::string family;  // graphs of one family are left out together
  std::vector<std::vector<double>>
      scores;  // [M][c] in the form that is averaged (normalised()), lower is faster
  std::vector<double> targets;  // [c] measured run times
};

// How good a ranking is: (scores [c], targets [c]) -> larger is better, e.g. kendall_tau_b. NaN where it
// is undefined; such a graph does not count.
using RankingMetric = std::function<double(std::span<const double>, std::span<const double>)>;

// Weights of members that were chosen, and what the choice is worth.
struct MemberSelection {
  std::vector<double> weights;  // [M] how often each member was taken, divided by all takings
  // Mean over graphs of the metric...
  double plain = 0;      // of what is combined without a choice
  double in_sample = 0;  // of the chosen weights, on the graphs that they were chosen on: too good
  double nested = 0;     // with each family's weights chosen on all other families: honest
  std::vector<double> nested_graphs;  // [G] of each graph; NaN where it is undefined
  // Of `nested` - `plain`: standard error and degrees of freedom, clustered by family; NaN and 0
  // where fewer than two families have a metric.
  double gain_error = 0, gain_degrees = 0;
  // What the gain must exceed: t(0.95, gain_degrees) x gain_error.
  double gain_noise = 0;
  bool takes_selection = false;  // the gain is above its noise; else `weights` are equal
};

// Greedy forward selection with replacement (Caruana et al., "Ensemble selection from libraries of
// models", ICML 2004): starting from nothing, `rounds` times adds the member whose addition gives the
// best mean metric (of equals the first). The nested score leaves out one family at a time. The
// selection is taken only where its nested gain is above 0 by a one-sided t test at 5 %, with
// family_variance of the graphs' gains: among members that are alike the gain is luck. `plain` [G]: the
// metric of each graph without a choice; empty: that of all members with equal weights. Throws Error
// where there is no graph or sizes differ, and ConfigError where all graphs are of one family.
MemberSelection select_members(std::span<const SelectionGraph> graphs, const RankingMetric& metric,
                               int rounds = 20, std::span<const double> plain = {});

// What each member is worth: the mean metric of all members minus that of all but this one, equal
// weights. [M]; a single member's gain is NaN.
std::vector<double> leave_one_out_gains(std::span<const SelectionGraph> graphs,
                                        const RankingMetric& metric);

}  // namespace tpudist
