#include "statistics/ranking/combination.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <utility>

#include "core/error.hpp"
#include "core/means.hpp"
#include "core/numbers.hpp"

namespace tpudist {
namespace {

constexpr auto kRules = std::to_array<std::pair<std::string_view, CombinationRule>>({
    {"mean", CombinationRule::mean},
    {"z_score", CombinationRule::z_score},
    {"min_max", CombinationRule::min_max},
    {"rank_mean", CombinationRule::rank_mean},
    {"borda", CombinationRule::borda},
    {"reciprocal_rank", CombinationRule::reciprocal_rank},
    {"softmax", CombinationRule::softmax},
});

using Values = std::vector<double>;

void require_finite(std::span<const double> scores) {
  for (std::size_t k = 0; k < scores.size(); ++k) {
    if (!std::isfinite(scores[k]))
      throw DataError(
          fmt::format("score {} of configuration {} cannot be combined; leave out the "
                      "member that gave it",
                      scores[k], k));
  }
}

// Whether the scores differ at most by rounding. Dividing by such a deviation would amplify
// rounding.
bool all_equal(std::span<const double> scores) {
  constexpr double kRounding = 8 * std::numeric_limits<double>::epsilon();
  const auto [low, high] = std::minmax_element(scores.begin(), scores.end());
  return *high - *low <= kRounding * std::max(std::abs(*low), std::abs(*high));
}

Values z_scores(std::span<const double> scores) {
  Values result(scores.size(), 0.0);
  if (all_equal(scores)) return result;
  const auto count = static_cast<double>(scores.size());
  const double centre = mean(scores), deviation = std::sqrt(squares_around(scores, centre) / count);
  if (!(deviation > 0)) return result;  // too small to be squared
  for (std::size_t k = 0; k < scores.size(); ++k) result[k] = (scores[k] - centre) / deviation;
  return result;
}

Values min_max(std::span<const double> scores) {
  const auto [low, high] = std::minmax_element(scores.begin(), scores.end());
  Values result(scores.size(), 0.0);
  if (all_equal(scores)) return result;
  for (std::size_t k = 0; k < scores.size(); ++k) result[k] = (scores[k] - *low) / (*high - *low);
  return result;
}

Values negative_borda(std::span<const double> scores) {
  Values sorted(scores.begin(), scores.end()), result;
  std::ranges::sort(sorted);
  for (const double score : scores) {
    const auto higher = sorted.end() - std::ranges::upper_bound(sorted, score);
    result.push_back(-static_cast<double>(higher));
  }
  return result;
}

Values negative_reciprocal_ranks(std::span<const double> scores) {
  Values result = mean_ranks(scores);
  for (double& rank : result) rank = -1 / rank;
  return result;
}

// log softmax(-z / temperature), shifted by its largest exponent against overflow.
Values log_probabilities(std::span<const double> scores, double temperature) {
  Values result = z_scores(scores);
  const double least = *std::min_element(result.begin(), result.end());
  double sum = 0;
  for (double& z : result) sum += std::exp(z = (least - z) / temperature);
  for (double& exponent : result) exponent -= std::log(sum);
  return result;
}

// Minus log of the weighted mean of probabilities, computed from their logarithms, so that no
// configuration underflows even at small temperatures.
Values negative_log_mean(std::span<const Values> logs, std::span<const double> weights) {
  Values result(logs.front().size());
  const double total = std::accumulate(weights.begin(), weights.end(), 0.0);
  for (std::size_t k = 0; k < result.size(); ++k) {
    double largest = logs.front()[k];
    for (const Values& log : logs) largest = std::max(largest, log[k]);
    double sum = 0;
    for (std::size_t m = 0; m < logs.size(); ++m)
      sum += weights[m] * std::exp(logs[m][k] - largest);
    result[k] = -(largest + std::log(sum / total));
  }
  return result;
}

Values weighted_mean(std::span<const Values> members, std::span<const double> weights) {
  Values sum(members.front().size(), 0.0);
  double total = 0;
  for (std::size_t m = 0; m < members.size(); ++m) {
    for (std::size_t k = 0; k < sum.size(); ++k) sum[k] += weights[m] * members[m][k];
    total += weights[m];
  }
  for (double& value : sum) value /= total;
  return sum;
}

}  // namespace

CombinationRule combination_rule(std::string_view name) {
  std::string names;
  for (const auto& [known, rule] : kRules) {
    if (known == name) return rule;
    names += (names.empty() ? "" : ", ") + std::string(known);
  }
  throw ConfigError(fmt::format("{} is no rule to combine members; use one of {}", name, names));
}

std::string_view name_of(CombinationRule rule) {
  return std::ranges::find(kRules, rule, [](const auto& known) { return known.second; })->first;
}

std::string to_text(const Combination& combination) {
  const bool scaled = combination.rule == CombinationRule::softmax;
  return std::string(name_of(combination.rule)) +
         (scaled ? fmt::format(" {}", combination.temperature) : "");
}

Combination read_combination(const std::string& text) {
  const std::size_t space = text.find(' ');
  Combination combination{combination_rule(text.substr(0, space))};
  if (space == std::string::npos) return combination;
  combination.temperature = number_of<double>(text.substr(space + 1)).value_or(kNone);
  if (to_text(combination) != text)
    throw ConfigError(fmt::format("'{}' is no way to combine members", text));
  return combination;
}

std::vector<double> normalised(std::span<const double> scores, const Combination& combination) {
  if (combination.rule != CombinationRule::mean) require_finite(scores);
  if (scores.empty()) return {};
  switch (combination.rule) {
    case CombinationRule::z_score:
      return z_scores(scores);
    case CombinationRule::min_max:
      return min_max(scores);
    case CombinationRule::rank_mean:
      return mean_ranks(scores);
    case CombinationRule::borda:
      return negative_borda(scores);
    case CombinationRule::reciprocal_rank:
      return negative_reciprocal_ranks(scores);
    case CombinationRule::softmax:
      return log_probabilities(scores, combination.temperature);
    case CombinationRule::mean:
      break;
  }
  return {scores.begin(), scores.end()};
}

std::vector<double> averaged_form(std::span<const double> scores, const Combination& combination) {
  Values form = normalised(scores, combination);
  if (combination.rule == CombinationRule::softmax) {
    for (double& value : form) value = -std::exp(value);
  }
  return form;
}

std::vector<double> combine_scored(std::span<const std::vector<double>> members,
                                   const Combination& combination,
                                   std::span<const double> weights) {
  if (!(combination.temperature > 0) || !std::isfinite(combination.temperature))
    throw Error(ErrorKind::failed, fmt::format("a temperature of {} is not above 0 and finite",
                                               combination.temperature));
  // Leave out members without weight before looking at their scores.
  std::vector<Values> used;
  Values used_weights;
  for (std::size_t m = 0; m < members.size(); ++m) {
    const double weight = weights.empty() ? 1 : weights[m];
    if (members[m].empty() || weight <= 0) continue;
    used.push_back(normalised(members[m], combination));
    used_weights.push_back(weight);
  }
  if (used.empty()) return {};
  return combination.rule == CombinationRule::softmax ? negative_log_mean(used, used_weights)
                                                      : weighted_mean(used, used_weights);
}

namespace {

// 1 + the number of lower scores, for each.
std::vector<std::int64_t> ranks_of(const std::vector<double>& scores) {
  std::vector<double> sorted = scores;
  std::ranges::sort(sorted);
  std::vector<std::int64_t> ranks;
  for (const double score : scores)
    ranks.push_back(std::ranges::lower_bound(sorted, score) - sorted.begin() + 1);
  return ranks;
}

}  // namespace

std::vector<MemberSpread> member_spreads(std::span<const std::vector<double>> members) {
  if (members.empty()) throw Error(ErrorKind::failed, "no member whose spread could be told");
  const std::size_t configs = members.front().size();
  std::vector<MemberSpread> spreads(configs);
  for (std::size_t m = 0; m < members.size(); ++m) {
    if (members[m].size() != configs) {
      throw Error(ErrorKind::failed,
                  fmt::format("member {} scores {} configurations, member 0 scores {}", m,
                              members[m].size(), configs));
    }
    const std::vector<double> z_scores = normalised(members[m], {CombinationRule::z_score});
    const std::vector<std::int64_t> ranks = ranks_of(members[m]);
    for (std::size_t k = 0; k < configs; ++k) {
      spreads[k].best_rank = m == 0 ? ranks[k] : std::min(spreads[k].best_rank, ranks[k]);
      spreads[k].worst_rank = std::max(spreads[k].worst_rank, ranks[k]);
      spreads[k].z_scores.push_back(z_scores[k]);
    }
  }
  for (MemberSpread& spread : spreads)
    spread.deviation = members.size() < 2 ? kNone : std::sqrt(sample_variance(spread.z_scores));
  return spreads;
}

}  // namespace tpudist
