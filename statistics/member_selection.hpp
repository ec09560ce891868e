#pragma once

#include <functional>
#include <span>
#include <string>
#include <vector>

namespace tpudist {

// What members say of one graph, and what was measured.
struct JudgedGraph {
  std::string family;                       // graphs of one family are left out together
  std::vector<std::vector<double>> scores;  // [M][c] in the form that is averaged (normalised())
  std::vector<double> targets;              // [c] measured run times
};

// How good a ranking is: (scores [c], targets [c]) -> larger is better, e.g. kendall_tau_b. NaN where it
// is undefined; such a graph does not count.
using RankingMetric = std::function<double(std::span<const double>, std::span<const double>)>;

// Weights of members that were chosen, and what the choice is worth.
struct MemberSelection {
  std::vector<double> weights;  // [M] how often each member was taken, divided by all takings
  // Mean over graphs of the metric...
  double plain = 0;      // of all members with equal weights
  double in_sample = 0;  // of the chosen weights, on the graphs that they were chosen on: too good
  double nested = 0;     // with each family's weights chosen on all other families: honest
  bool takes_selection = false;  // nested > plain; else `weights` are equal
};

// Greedy forward selection with replacement (Caruana et al., "Ensemble selection from libraries of
// models", ICML 2004): starting from nothing, `rounds` times adds the member whose addition gives the
// best mean metric (of equals the first). The nested score leaves out one family at a time; without a
// positive nested gain the plain combination is used, because among near-equal members the greedy gain
// is luck. Throws Error where there is no graph or sizes differ, and
// ConfigError where all graphs are of one family.
MemberSelection select_members(std::span<const JudgedGraph> graphs, const RankingMetric& metric,
                               int rounds = 20);

// What each member is worth: the mean metric of all members minus that of all but this one, equal
// weights. [M]; a single member's gain is NaN.
std::vector<double> leave_one_out_gains(std::span<const JudgedGraph> graphs,
                                        const RankingMetric& metric);

}  // namespace tpudist
