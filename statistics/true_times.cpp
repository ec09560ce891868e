#include "statistics/true_times.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

namespace tpudist {
namespace {

constexpr double kReach = 5;  // standard deviations

// Distance from a configuration's centre within which its true time is searched. Noise may be
// larger on one side.
double reach_of(const NoiseModel& noise, double centre) {
  const double here = noise.deviation(centre);
  const double near =
      std::max(noise.deviation(centre - kReach * here), noise.deviation(centre + kReach * here));
  return kReach * std::clamp(near, here, 3 * here);
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

// Only points that some configuration uses: a few for each, even if they are far apart.
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

}  // namespace tpudist
