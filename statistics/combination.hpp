#pragma once

#include <span>
#include <string_view>
#include <vector>

namespace tpudist {

// Combines the scores of several members on the configurations of one graph into one ranking. A
// lower score means a faster configuration, before and after combining. Every rule except `mean`
// first makes each member's scores independent of their scale, so that large numbers alone do not
// win. docs/predictions.md has the formulas.
enum class CombinationRule {
  mean,             // mean of the raw scores
  z_score,          // mean of (score - member's mean) / member's standard deviation
  min_max,          // mean of (score - member's minimum) / (maximum - minimum)
  rank_mean,        // mean of the ranks 1 (fastest) .. c; equal scores share their mean rank
  borda,            // minus the mean number of configurations that the member scores higher
                    // (slower)
  reciprocal_rank,  // minus the mean of 1 / rank, ranks as above; the fastest count most
  softmax,          // minus log of the mean of softmax(-z_score / temperature)
};

struct Combination {
  CombinationRule rule = CombinationRule::z_score;
  double temperature = 1;  // of `softmax`, above 0 and finite
};

// Parses a rule's name in a configuration file ("z_score"). Throws ConfigError, which lists the
// names.
CombinationRule combination_rule(std::string_view name);
std::string_view name_of(CombinationRule rule);

// One member's scores [c] in the form that the rule averages; for softmax the logarithm of that. A
// member that gives all configurations the same score becomes all zeros with z_score and min_max,
// which treat scores that differ only by rounding as equal. With every rule such a member does not
// change the order. All rules except `mean` throw DataError, which names the configuration, where a
// score is not finite; `mean` keeps such scores.
std::vector<double> normalised(std::span<const double> scores, const Combination& combination);

// Combines members' scores, each [c], into one score per configuration [c]. `weights` [M] must be
// finite, not negative and not all zero; empty: equal weights. Sums run over members in their
// order, so the result is a pure function of the arguments. Throws Error where lengths differ,
// there is no member, or the weights are invalid.
std::vector<double> combine(std::span<const std::vector<double>> members,
                            const Combination& combination, std::span<const double> weights = {});

}  // namespace tpudist
