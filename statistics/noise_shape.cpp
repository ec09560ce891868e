#include "statistics/noise_shape.hpp"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "core/error.hpp"

namespace tpudist {
namespace {

constexpr int kPerDeviation = 32;  // points of the table
constexpr int kPoints = 2 * static_cast<int>(NoiseShape::kReach) * kPerDeviation + 1;
constexpr double kStep = 1.0 / kPerDeviation;
constexpr double kWideShare = 0.002, kWide = 4;

double point(std::size_t i) {
  return static_cast<double>(i) * kStep - NoiseShape::kReach;
}

double normal_density(double z) {
  return std::exp(-z * z / 2) / std::sqrt(2 * std::numbers::pi);
}

// The value of a table at z, between its points in a straight line; 0 outside.
double interpolated(const std::vector<double>& table, double z) {
  const double at = (z + NoiseShape::kReach) / kStep;
  if (!(at >= 0) || at >= static_cast<double>(table.size() - 1)) return 0;
  const auto low = static_cast<std::size_t>(at);
  return table[low] + (at - static_cast<double>(low)) * (table[low + 1] - table[low]);
}

struct Moments {
  double mass = 0, mean = 0, deviation = 0;
};

Moments moments_of(const std::vector<double>& density) {
  Moments m;
  double square = 0;
  for (std::size_t i = 0; i < density.size(); ++i) {
    m.mass += density[i] * kStep;
    m.mean += density[i] * kStep * point(i);
    square += density[i] * kStep * point(i) * point(i);
  }
  m.mean /= m.mass;
  m.deviation = std::sqrt(square / m.mass - m.mean * m.mean);
  return m;
}

// Half of 0.9 min(deviation, quartiles' distance / 1.34) n^(-1/5) (Silverman, "Density estimation
// for statistics and data analysis", 1986, formula 3.31).
double kernel_width(std::vector<double> values) {
  std::ranges::sort(values);
  const std::size_t n = values.size();
  double sum = 0, squares = 0;
  for (const double value : values) sum += value, squares += value * value;
  const double mean = sum / static_cast<double>(n);
  const double deviation = std::sqrt(std::max(0.0, squares / static_cast<double>(n) - mean * mean));
  const double quartiles = (values[3 * n / 4] - values[n / 4]) / 1.34;
  const double spread = quartiles > 0 ? std::min(deviation, quartiles) : deviation;
  return std::max(0.45 * spread * std::pow(static_cast<double>(n), -0.2), kStep);
}

// Values binned to the points of the table and smoothed. Those beyond its ends count there.
std::vector<double> smoothed(std::span<const double> values, double width) {
  std::vector<double> counts(kPoints);
  for (const double value : values) {
    const double at = std::clamp((value + NoiseShape::kReach) / kStep, 0.0, kPoints - 1.0);
    counts[static_cast<std::size_t>(std::lround(at))] += 1;
  }
  std::vector<double> density(kPoints);
  const int reach = static_cast<int>(std::ceil(5 * width / kStep));
  for (int i = 0; i < kPoints; ++i) {
    if (counts[static_cast<std::size_t>(i)] == 0) continue;
    for (int j = std::max(0, i - reach); j <= std::min(kPoints - 1, i + reach); ++j) {
      density[static_cast<std::size_t>(j)] +=
          counts[static_cast<std::size_t>(i)] * normal_density((j - i) * kStep / width);
    }
  }
  return density;
}

}  // namespace

NoiseShape::NoiseShape() {
  std::vector<double> density(kPoints);
  for (std::size_t i = 0; i < density.size(); ++i) density[i] = normal_density(point(i));
  tabulate(std::move(density));
}

NoiseShape::NoiseShape(std::span<const double> deviations) {
  if (deviations.size() < kLeast)
    throw Error(ErrorKind::failed, "too few deviations for the shape of noise");
  if (!std::ranges::all_of(deviations, [](double z) { return std::isfinite(z); }))
    throw Error(ErrorKind::failed, "a deviation of the shape of noise is not finite");
  const std::vector<double> raw =
      smoothed(deviations, kernel_width({deviations.begin(), deviations.end()}));
  const Moments m = moments_of(raw);
  std::vector<double> density(kPoints);
  for (std::size_t i = 0; i < density.size(); ++i)
    density[i] = interpolated(raw, m.mean + m.deviation * point(i));
  tabulate(std::move(density));
}

void NoiseShape::tabulate(std::vector<double> density) {
  const double mass = moments_of(density).mass;
  double sum = 0;
  for (std::size_t i = 0; i < density.size(); ++i) {
    density[i] /= mass;
    if (i > 0) sum += kStep * (density[i - 1] + density[i]) / 2;
    cumulative_.push_back(sum);
    density_.push_back((1 - kWideShare) * density[i] +
                       kWideShare / kWide * normal_density(point(i) / kWide));
  }
  for (double& share : cumulative_) share /= sum;
}

double NoiseShape::density(double z) const {
  return interpolated(density_, z);
}

double NoiseShape::quantile(double u) const {
  const auto above = std::ranges::upper_bound(cumulative_, u);
  if (above == cumulative_.end()) return kReach;
  if (above == cumulative_.begin()) return -kReach;
  const auto i = static_cast<std::size_t>(above - cumulative_.begin());
  const double low = cumulative_[i - 1], share = (u - low) / (cumulative_[i] - low);
  return point(i - 1) + share * kStep;
}

}  // namespace tpudist
