#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace tpudist {

// Combines the scores of several members on the configurations of one graph into one ranking. A
// lower score means a faster configuration, before and after combining. Every rule except `mean`
// first removes the scale of each member's scores, so that large numbers alone do not win.
// docs/predictions.md has the formulas.
enum class CombinationRule {
  mean,             // mean of the raw scores
  z_score,          // mean of (score - member's mean) / member's standard deviation
  min_max,          // mean of (score - member's minimum) / (maximum - minimum)
  rank_mean,        // mean of the ranks 1 (fastest) .. c; equal scores share their mean rank
  borda,            // minus the mean number of configurations that the member scores higher
                    // (slower)
  reciprocal_rank,  // minus the mean of 1 / rank, ranks as above; the fastest counts most
  softmax,          // minus log of the mean of softmax(-z_score / temperature)
};

struct Combination {
  CombinationRule rule = CombinationRule::z_score;
  double temperature = 1;  // of `softmax`, above 0 and finite

  bool operator==(const Combination&) const = default;
};

// Parses a rule's name in a configuration file ("z_score"). Throws ConfigError with the known
// names.
CombinationRule combination_rule(std::string_view name);
std::string_view name_of(CombinationRule rule);

// The form in files: "z_score"; softmax has its temperature, "softmax 0.5".
std::string to_text(const Combination& combination);
// The inverse of to_text. Throws ConfigError for any other text.
Combination read_combination(const std::string& text);

// One member's scores [c] in the form that the rule averages (softmax: logarithms of what it
// averages). A member with one score for all configurations leaves the order to the others, with
// every rule; z_score and min_max return zeros, and also ignore differences by rounding. All rules
// but `mean` throw DataError, which names the configuration, if a score is not finite. `mean`
// passes such scores through.
std::vector<double> normalised(std::span<const double> scores, const Combination& combination);

// As normalised(), but for softmax the negative probabilities, so that the mean of several members
// ranks as combine_scored does: lower is faster.
std::vector<double> averaged_form(std::span<const double> scores, const Combination& combination);

// Combines the members that have scores [c] (not empty) and a weight above 0 into one score for
// each configuration [c]; empty if there is no such member. `weights` [M]; empty: all equal. Sums
// run over members in their order: the result is a pure function of the arguments. Throws Error for
// a temperature that is not above 0 and finite.
std::vector<double> combine_scored(std::span<const std::vector<double>> members,
                                   const Combination& combination,
                                   std::span<const double> weights = {});

// The agreement of an ensemble's members on one of c configurations.
struct MemberSpread {
  // Sample standard deviation (divisor M - 1) over members of their z-scores, without unit. A
  // z-score is (score - mean) / standard deviation over the member's c scores. NaN for a single
  // member.
  double deviation = 0;
  // The lowest and the highest rank that a member gives the configuration. A rank is 1 + the number
  // of configurations with a lower score, so equal scores have equal ranks.
  std::int64_t best_rank = 1, worst_rank = 1;
  std::vector<double> z_scores = {};  // [M]
};

// `members` [M][c] are scores, lower is faster. A member with equal scores has z-scores of 0.
// Returns [c]. Throws DataError if a score is not finite, and Error if there is no member or if
// lengths differ.
std::vector<MemberSpread> member_spreads(std::span<const std::vector<double>> members);

}  // namespace tpudist
