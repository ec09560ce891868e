#pragma once

#include <functional>
#include <span>
#include <string>
#include <vector>

namespace tpudist {

// The scores of all members on one graph, and the measured run times.
struct SelectionGraph {
  std::string family;  // the graphs of a family are left out together
  std::vector<std::vector<double>>
      scores;                   // [M][c] in the averaged form (normalised()); lower is faster
  std::vector<double> targets;  // [c] measured run times
};

// Quality of a ranking: (scores [c], targets [c]) -> larger is better, e.g. kendall_tau_b. A graph
// with NaN (undefined) does not count.
using RankingMetric = std::function<double(std::span<const double>, std::span<const double>)>;

// The weights of selected members, and the worth of the selection.
struct MemberSelection {
  std::vector<double> weights;  // [M] how often each member was added, divided by all rounds
  // Mean over graphs of the metric:
  double plain = 0;      // without selection
  double in_sample = 0;  // of the selected weights on the graphs used to select them; biased
                         // upwards
  double nested = 0;     // with the weights for each family selected on all other families;
                         // unbiased
  std::vector<double> nested_graphs;  // [G] the nested metric of each graph; NaN if it is
                                      // undefined
  // Standard error and degrees of freedom of `nested` - `plain`, clustered by family; NaN and 0 if
  // fewer than two families have a metric.
  double gain_error = 0, gain_degrees = 0;
  // The gain must exceed this: t(0.95, gain_degrees) x gain_error.
  double gain_noise = 0;
  bool takes_selection = false;  // the gain exceeds gain_noise; otherwise `weights` are equal
};

// Greedy forward selection with replacement (Caruana et al., "Ensemble selection from libraries of
// models", ICML 2004). Starts with no member, and `rounds` times adds the member that gives the
// best mean metric, the first among equals. The nested score leaves out one family at a time.
//
// The selection is used only if its nested gain is above 0 in a one-sided t test at 5 %, with
// family_variance of the graphs' gains: among equally good members the gain is luck. `plain` [G]:
// the metric of each graph without selection; empty: of all members, equally weighted. Throws Error
// if there is no graph or sizes differ, and ConfigError if all graphs are of one family.
MemberSelection select_members(std::span<const SelectionGraph> graphs, const RankingMetric& metric,
                               int rounds = 20, std::span<const double> plain = {});

}  // namespace tpudist
