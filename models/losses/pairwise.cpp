#include "models/losses/losses.hpp"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <numeric>
#include <utility>
#include <vector>

#include "core/random.hpp"

namespace tpudist {
namespace {

// Calls visit(slower, faster) for the pairs of different targets.
template <typename Visit>
void for_pairs(std::span<const double> targets, const PairOptions& options, std::uint64_t tie_key,
               const Visit& visit) {
  const std::size_t n = targets.size();
  const auto compare = [&](std::size_t i, std::size_t j) {
    if (targets[i] > targets[j]) visit(i, j);
    if (targets[i] < targets[j]) visit(j, i);
  };
  if (options.permutations == 0) {
    for (std::size_t i = 0; i < n; ++i) {
      for (std::size_t j = i + 1; j < n; ++j) compare(i, j);
    }
    return;
  }
  CounterRng rng(tie_key);
  std::vector<std::size_t> partner(n);
  for (int p = 0; p < options.permutations; ++p) {
    std::iota(partner.begin(), partner.end(), std::size_t{0});
    rng.shuffle(std::span(partner));
    for (std::size_t i = 0; i < n; ++i) compare(i, partner[i]);
  }
}

// The hardest share of some values: those above `least`, and the first `equal` that equal it.
struct Hardest {
  double least = -std::numeric_limits<double>::infinity();
  std::size_t equal = 0;
  bool takes(double value) {
    if (value > least || std::isnan(value)) return true;
    if (value < least || equal == 0) return false;
    --equal;
    return true;
  }
};

Hardest hardest_of(std::vector<double> values, double share) {
  if (values.empty()) return {};
  for (double& value : values) {
    if (std::isnan(value)) value = std::numeric_limits<double>::infinity();
  }
  const auto count =
      static_cast<std::size_t>(std::ceil(share * static_cast<double>(values.size())));
  const auto last =
      values.begin() + static_cast<std::ptrdiff_t>(std::max<std::size_t>(count, 1)) - 1;
  std::ranges::nth_element(values, last, std::greater<>());
  return {*last, static_cast<std::size_t>(std::count(values.begin(), last + 1, *last))};
}

// The largest target of the `top` fastest.
double top_target(std::span<const double> targets, int top) {
  if (top == 0 || targets.empty()) return -std::numeric_limits<double>::infinity();
  std::vector<double> fastest(targets.begin(), targets.end());
  const std::size_t last = std::min(static_cast<std::size_t>(top), fastest.size()) - 1;
  std::ranges::nth_element(fastest, fastest.begin() + static_cast<std::ptrdiff_t>(last));
  return fastest[last];
}

// A loss that adds up the results of `of_pair` for each pair of a slower and a faster
// configuration: the value at the difference of their scores, and its derivative.
template <typename OfPair>
SlateLoss sum_over_pairs(const char* name, const PairOptions& options, const OfPair& of_pair) {
  const auto evaluate = [=](std::span<const double> scores, std::span<const double> targets,
                            std::uint64_t tie_key, std::span<double> gradient) -> SlateLoss::Value {
    const double fast_target = top_target(targets, options.top);
    const auto weighted = [&](std::size_t slow, std::size_t fast) {
      std::pair<double, double> pair = of_pair(scores[slow] - scores[fast]);
      if (targets[fast] <= fast_target) {
        pair.first *= options.top_weight;
        pair.second *= options.top_weight;
      }
      return pair;
    };
    Hardest hardest;
    if (options.hardest < 1) {
      std::vector<double> values;
      for_pairs(targets, options, tie_key, [&](std::size_t slow, std::size_t fast) {
        values.push_back(weighted(slow, fast).first);
      });
      hardest = hardest_of(std::move(values), options.hardest);
    }
    double sum = 0, all = 0, taken = 0;
    for_pairs(targets, options, tie_key, [&](std::size_t slow, std::size_t fast) {
      const std::pair<double, double> pair = weighted(slow, fast);
      ++all;
      if (options.hardest < 1 && !hardest.takes(pair.first)) return;
      ++taken;
      sum += pair.first;
      gradient[slow] += pair.second;
      gradient[fast] -= pair.second;
    });
    const auto n = static_cast<double>(scores.size());
    if (options.sum || n == 0) return {sum, true};
    const double pairs =
        n * (options.permutations > 0 ? options.permutations : n) * (taken > 0 ? taken / all : 1.0);
    for (double& g : gradient) g /= pairs;
    return {sum / pairs, true};
  };
  return checked_loss(name, true, evaluate);
}

}  // namespace

SlateLoss diff_mat(double margin, double scale) {
  return checked_loss(
      "diff_mat", true,
      [=](auto scores, auto targets, std::uint64_t, auto gradient) -> SlateLoss::Value {
        const std::size_t n = scores.size();
        if (n < 2) return {};
        const double share = scale / (static_cast<double>(n) * static_cast<double>(n - 1) / 2);
        double sum = 0;
        for (std::size_t i = 0; i < n; ++i) {
          for (std::size_t j = i + 1; j < n; ++j) {
            const double sign = (targets[j] > targets[i]) - (targets[j] < targets[i]);
            const double value = margin - sign * (scores[j] - scores[i]);
            if (value < 0) continue;  // NaN continues
            sum += value;
            gradient[j] -= sign;
            gradient[i] += sign;
          }
        }
        for (double& g : gradient) g *= share;
        return {share * sum, true};
      });
}

SlateLoss pairwise_hinge(double margin, const PairOptions& options) {
  return sum_over_pairs("pairwise_hinge", options,
                        [=](double difference) -> std::pair<double, double> {
                          const double value = margin - difference;
                          if (value < 0) return {0.0, 0.0};
                          return {value, -1.0};  // also for NaN
                        });
}

SlateLoss pairwise_logistic(double sigma, const PairOptions& options) {
  return sum_over_pairs("pairwise_logistic", options,
                        [=](double difference) -> std::pair<double, double> {
                          // log(1 + exp(-x)) without overflow for either sign.
                          const double x = sigma * difference, small = std::exp(-std::abs(x));
                          const double value = std::max(-x, 0.0) + std::log1p(small);
                          const double sigmoid_of_minus_x = (x > 0 ? small : 1.0) / (1 + small);
                          return {std::isnan(x) ? x : value, -sigma * sigmoid_of_minus_x};
                        });
}

}  // namespace tpudist
