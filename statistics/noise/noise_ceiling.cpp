#include "statistics/noise/noise_ceiling.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "core/error.hpp"
#include "core/means.hpp"
#include "statistics/intervals/distributions.hpp"
#include "statistics/ranking/metrics.hpp"

namespace tpudist {
namespace {

constexpr double kReach = 5;  // standard deviations

// The distance from a configuration's centre within which the true time is searched. Noise may be
// larger on one side.
double reach_of(const NoiseModel& noise, double centre) {
  const double here = noise.deviation(centre);
  const double near =
      std::max(noise.deviation(centre - kReach * here), noise.deviation(centre + kReach * here));
  return kReach * std::clamp(near, here, 3 * here);
}

constexpr int kTruths = 20;             // possible truths that are drawn
constexpr int kErrorDraws = 5;          // with another noise, for the effect of its error
constexpr double kMethodError = 0.006;  // bench/ceiling_table: errors with known noise
constexpr double kTwoSided = 1.96;      // of a normal distribution, 95 %

// Kendall's tau-b between a possible truth and new measurements of it.
double score_of_draw(const MeasuredConfigs& measured, const NoiseModel& noise,
                     const TrueTimes& truth, std::uint64_t key) {
  CounterRng random(key);
  const std::vector<double> levels = truth.draw(random);
  std::vector<double> ranking, times;
  ranking.reserve(measured.rows.size());
  times.reserve(measured.rows.size());
  for (std::int64_t c = 0; c < measured.configs(); ++c) {
    const double level = levels[static_cast<std::size_t>(c)];
    const double deviation = noise.deviation(level);
    for (std::size_t i = 0; i < measured.times_of(c).size(); ++i) {
      const double time =
          std::exp(level + deviation * noise.shape(level).quantile(random.uniform()));
      ranking.push_back(level);
      times.push_back(measured.whole ? std::round(time) : time);
    }
  }
  return kendall_tau_b(ranking, times);
}

std::vector<double> scores_of_draws(const MeasuredConfigs& measured, const NoiseModel& noise,
                                    const TrueTimes& truth, int draws, std::uint64_t seed) {
  std::vector<double> scores;
  for (int d = 0; d < draws; ++d) {
    scores.push_back(
        score_of_draw(measured, noise, truth, mix_key({seed, static_cast<std::uint64_t>(d)})));
  }
  return scores;
}

// Variance from the free choices of the method: the mean square of the ceiling's change. For the
// levels: with twice the width, and with half the width and a quarter of the degrees. For the
// shape: with twice the residuals, and with a normal shape.
template <typename MovedBy>
double choice_variance(const MovedBy& moved_by) {
  const auto squared = [&](const NoiseChoices& choices) { return std::pow(moved_by(choices), 2); };
  const auto [width, degrees, deviations] = NoiseChoices();
  return (squared({width / 2, degrees / 4, deviations}) +
          squared({width * 2, degrees, deviations})) /
             2 +
         (squared({width, degrees, 0}) + squared({width, degrees, deviations * 2})) / 2;
}

// Possible shapes of noise if too few repeats show the shape: a sharp rise and a long tail (the
// exponential distribution), and two long tails (Student's t with 3 degrees).
std::array<NoiseShape, 2> possible_shapes() {
  constexpr int kQuantiles = 2000;
  std::vector<NoiseShape::Deviation> one_tail, two_tails;
  for (int i = 0; i < kQuantiles; ++i) {
    const double u = (i + 0.5) / kQuantiles;
    one_tail.push_back({-std::log(1 - u), 0});
    two_tails.push_back({t_quantile(u, 3), 0});
  }
  return {NoiseShape(one_tail), NoiseShape(two_tails)};
}

NoiseCeiling none(std::string reason) {
  NoiseCeiling ceiling;
  ceiling.reason = std::move(reason);
  return ceiling;
}

// `variance`: of the ceiling, without the spread of the draws.
NoiseCeiling ceiling_of(std::span<const double> scores, double variance) {
  variance += sample_variance(scores) * (1 + 1 / static_cast<double>(scores.size())) +
              kMethodError * kMethodError;
  NoiseCeiling ceiling;
  ceiling.value = mean(scores);
  ceiling.low = std::max(*ceiling.value - kTwoSided * std::sqrt(variance), -1.0);
  ceiling.high = std::min(*ceiling.value + kTwoSided * std::sqrt(variance), 1.0);
  return ceiling;
}

}  // namespace

TrueTimes::TrueTimes(const MeasuredConfigs& measured, const NoiseModel& noise) {
  std::vector<double> centres;
  for (std::int64_t c = 0; c < measured.configs(); ++c) centres.push_back(measured.median_of(c));
  make_grid(noise, centres);
  weigh(measured, noise, centres);
  weights_.assign(grid_.size(), 1 / static_cast<double>(grid_.size()));
  for (int s = 0; s < kSteps; ++s) step();
}

// Only points that some configuration uses: a few for each, even if configurations are far apart.
void TrueTimes::make_grid(const NoiseModel& noise, const std::vector<double>& centres) {
  std::vector<double> sorted = centres;
  std::ranges::sort(sorted);
  double next = -std::numeric_limits<double>::infinity();  // the next point to add
  for (const double centre : sorted) {
    const double reach = reach_of(noise, centre);
    next = std::max(next, centre - reach);
    while (next <= centre + reach) {
      grid_.push_back(next);
      width_.push_back(noise.deviation(next) / kPerDeviation);
      next += width_.back();
    }
  }
}

void TrueTimes::weigh(const MeasuredConfigs& measured, const NoiseModel& noise,
                      const std::vector<double>& centres) {
  std::vector<double> deviations;
  for (const double point : grid_) deviations.push_back(noise.deviation(point));
  std::vector<double> logs;
  for (std::size_t c = 0; c < centres.size(); ++c) {
    const double reach = reach_of(noise, centres[c]);
    const auto first = std::ranges::lower_bound(grid_, centres[c] - reach) - grid_.begin();
    const auto end = std::ranges::upper_bound(grid_, centres[c] + reach) - grid_.begin();
    bands_.push_back({first, end - first, std::ssize(likelihood_)});
    logs.clear();
    for (auto j = static_cast<std::size_t>(first); j < static_cast<std::size_t>(end); ++j) {
      double sum = 0;
      for (const double time : measured.times_of(static_cast<std::int64_t>(c))) {
        const double density = noise.shape(grid_[j]).density((time - grid_[j]) / deviations[j]);
        sum += std::log(std::max(density / deviations[j], 1e-300));
      }
      logs.push_back(sum);
    }
    const double largest = *std::ranges::max_element(logs);
    for (const double value : logs)
      likelihood_.push_back(static_cast<float>(std::exp(value - largest)));
  }
}

void TrueTimes::step() {
  std::vector<double> next(grid_.size());
  for (const Band& band : bands_) {
    const float* likelihood = likelihood_.data() + band.begin;
    const double* weight = weights_.data() + band.first;
    double* to = next.data() + band.first;
    double sum = 0;
    for (std::int64_t j = 0; j < band.count; ++j) sum += weight[j] * likelihood[j];
    const double scale = 1 / (sum * static_cast<double>(bands_.size()));
    for (std::int64_t j = 0; j < band.count; ++j) to[j] += scale * weight[j] * likelihood[j];
  }
  weights_ = std::move(next);
}

std::vector<double> TrueTimes::draw(CounterRng& random) const {
  std::vector<double> times;
  times.reserve(bands_.size());
  for (const Band& band : bands_) {
    const float* likelihood = likelihood_.data() + band.begin;
    const double* weight = weights_.data() + band.first;
    double sum = 0;
    for (std::int64_t j = 0; j < band.count; ++j) sum += weight[j] * likelihood[j];
    double left = sum * random.uniform();
    std::int64_t j = 0;
    for (; j + 1 < band.count; ++j) {
      left -= weight[j] * likelihood[j];
      if (left < 0) break;
    }
    const auto at = static_cast<std::size_t>(band.first + j);
    times.push_back(grid_[at] + (random.uniform() - 0.5) * width_[at]);
  }
  return times;
}

NoiseCeiling noise_ceiling(std::span<const double> times, std::span<const std::int32_t> config,
                           std::uint64_t seed, const std::optional<NoiseModel>& noise) {
  if (times.size() != config.size())
    throw Error(ErrorKind::failed, "a noise ceiling needs a configuration for each run time");
  if (std::string fault = fault_of_times(times); !fault.empty()) return none(std::move(fault));
  const MeasuredConfigs measured = measured_configs(times, config);
  if (measured.configs() < 2) return none("there are fewer than two configurations to rank");
  if (std::string fault = fault_of_repeats(measured); !noise && !fault.empty())
    return none(std::move(fault));
  if (noise) {
    const TrueTimes truth(measured, *noise);
    return ceiling_of(scores_of_draws(measured, *noise, truth, kTruths, seed), 0);
  }
  const NoiseEstimate estimate = estimate_noise(measured);
  const auto scores =
      scores_of_draws(measured, estimate.model, TrueTimes(measured, estimate.model), kTruths, seed);
  // Change of the ceiling with another noise, using the same random numbers.
  const auto moved_by = [&](const NoiseModel& moved) {
    const auto other =
        scores_of_draws(measured, moved, TrueTimes(measured, moved), kErrorDraws, seed);
    return mean(other) - mean(std::span(scores).first(kErrorDraws));
  };
  const double error = moved_by(estimate.model.scaled(1 + estimate.relative_error));
  NoiseCeiling ceiling =
      ceiling_of(scores, error * error + choice_variance([&](const NoiseChoices& choices) {
                           return moved_by(estimate_noise(measured, choices).model);
                         }));
  ceiling.normal_assumed = !estimate.shape_known;
  if (ceiling.normal_assumed) {
    double down = 0, up = 0;
    for (const NoiseShape& shape : possible_shapes()) {
      const double moved = moved_by(estimate.model.with_shapes({shape}, {}));
      down = std::min(down, moved);
      up = std::max(up, moved);
    }
    const double value = *ceiling.value;
    ceiling.low = std::max(value - std::hypot(value - ceiling.low, down), -1.0);
    ceiling.high = std::min(value + std::hypot(ceiling.high - value, up), 1.0);
  }
  ceiling.repeated_configs = estimate.repeated_configs;
  ceiling.noise = estimate.typical;
  return ceiling;
}

std::string to_text(const NoiseCeiling& ceiling) {
  if (!ceiling.value) return "none: " + ceiling.reason;
  return fmt::format("{:.3f} ({:.3f} to {:.3f}){}", *ceiling.value, ceiling.low, ceiling.high,
                     ceiling.normal_assumed ? ", noise assumed normal" : "");
}

}  // namespace tpudist
