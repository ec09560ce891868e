#include "models/losses/losses.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

#include "core/random.hpp"

namespace tpudist {
namespace {

constexpr double kEps = 1e-10;

// Configurations by descending target; equal targets in an order drawn from `tie_key`.
std::vector<std::size_t> slowest_first(std::span<const double> targets, std::uint64_t tie_key) {
  std::vector<std::size_t> order(targets.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  CounterRng(tie_key).shuffle(std::span(order));
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return targets[a] > targets[b]; });
  return order;
}

SlateLoss::Value evaluate(double clip_norm, double temperature, std::span<const double> scores,
                          std::span<const double> targets, std::uint64_t tie_key,
                          std::span<double> gradient) {
  const std::size_t n = scores.size();
  if (n < 2) return {};
  double square = 0;
  for (const double score : scores) square += score * score;
  const double norm = std::sqrt(square);
  const bool clipped = norm > clip_norm * temperature;
  const double scale = clipped ? clip_norm / norm : 1 / temperature;

  const std::vector<std::size_t> order = slowest_first(targets, tie_key);
  const std::size_t top = std::max_element(scores.begin(), scores.end()) - scores.begin();
  std::vector<double> exponential(n), tail(n);
  double sum = 0;
  for (std::size_t i = n; i-- > 0;) {
    exponential[i] = std::exp(scale * (scores[order[i]] - scores[top]));
    tail[i] = sum += exponential[i];
  }
  double loss = 0, inverse = 0, lost = 0;  // lost: the effect of kEps on the invariance under a
                                           // shift of all scores
  for (std::size_t i = 0; i < n; ++i) {
    loss += std::log(tail[i] + kEps) - scale * (scores[order[i]] - scores[top]);
    inverse += 1 / (tail[i] + kEps);
    lost += kEps / (tail[i] + kEps);
    gradient[order[i]] = exponential[i] * inverse - 1;
  }
  gradient[top] += lost;
  if (!clipped) {
    for (double& g : gradient) g *= scale;
    return {loss, true};
  }

  // p = clip_norm * s / ||s||: the part of the gradient along s vanishes.
  double along = 0;
  for (std::size_t i = 0; i < n; ++i) along += gradient[i] * scores[i];
  for (std::size_t i = 0; i < n; ++i) {
    gradient[i] = scale * (gradient[i] - along / square * scores[i]);
  }
  return {loss, false};
}

}  // namespace

SlateLoss list_mle(double clip_norm, double temperature) {
  return checked_loss("list_mle", std::isinf(clip_norm),
                      [=](auto scores, auto targets, std::uint64_t tie_key, auto gradient) {
                        return evaluate(clip_norm, temperature, scores, targets, tie_key, gradient);
                      });
}

}  // namespace tpudist
