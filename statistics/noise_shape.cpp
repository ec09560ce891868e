#include "statistics/noise_shape.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <numbers>

#include "core/error.hpp"

namespace tpudist {
namespace {

constexpr int kPerDeviation = 32;  // points of the table
constexpr int kPoints = 2 * static_cast<int>(NoiseShape::kReach) * kPerDeviation + 1;
constexpr double kStep = 1.0 / kPerDeviation;
constexpr double kCell = 1.0 / 8;  // of the grid on which the shape is estimated
constexpr int kCells = static_cast<int>(2 * NoiseShape::kReach / kCell) + 1;
constexpr int kSteps = 20;           // more would produce spurious modes
constexpr double kSmoothing = 0.12;  // standard deviation of the smoothing kernel
constexpr double kWideShare = 0.002, kWide = 4;

double point(std::size_t i) {
  return static_cast<double>(i) * kStep - NoiseShape::kReach;
}

double normal_density(double z) {
  return std::exp(-z * z / 2) / std::sqrt(2 * std::numbers::pi);
}

// The value of a table at z, interpolated linearly; 0 outside.
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

// Counts on the grid, for each error. Deviations beyond its ends are counted there.
std::map<double, std::vector<double>> counted(std::span<const NoiseShape::Deviation> deviations) {
  std::map<double, std::vector<double>> counts;
  for (const NoiseShape::Deviation& deviation : deviations) {
    std::vector<double>& own = counts.try_emplace(deviation.error, kCells).first->second;
    const double at = std::clamp((deviation.value + NoiseShape::kReach) / kCell, 0.0, kCells - 1.0);
    own[static_cast<std::size_t>(std::lround(at))] += 1;
  }
  return counts;
}

// [kCells] normal kernel of a deviation, by distance in cells.
std::vector<double> kernel_of(double deviation) {
  std::vector<double> kernel;
  for (int i = 0; i < kCells; ++i) kernel.push_back(normal_density(i * kCell / deviation));
  return kernel;
}

// The weights of the cells that make the counts most likely.
std::vector<double> deconvolved(const std::map<double, std::vector<double>>& counts) {
  std::vector<double> weights(kCells, 1.0);
  for (int step = 0; step < kSteps; ++step) {
    std::vector<double> next(kCells);
    for (const auto& [error, own] : counts) {
      const std::vector<double> kernel = kernel_of(std::max(error, kCell / 2));
      for (int i = 0; i < kCells; ++i) {
        if (own[static_cast<std::size_t>(i)] == 0) continue;
        const auto term = [&](int j) {
          return weights[static_cast<std::size_t>(j)] *
                 kernel[static_cast<std::size_t>(std::abs(i - j))];
        };
        double sum = 0;
        for (int j = 0; j < kCells; ++j) sum += term(j);
        if (sum <= 0) continue;
        for (int j = 0; j < kCells; ++j)
          next[static_cast<std::size_t>(j)] += own[static_cast<std::size_t>(i)] * term(j) / sum;
      }
    }
    weights = std::move(next);
  }
  return weights;
}

// At the points of the table, the weights of the cells smoothed.
std::vector<double> smoothed(const std::vector<double>& weights) {
  std::vector<double> density(kPoints);
  for (std::size_t i = 0; i < density.size(); ++i) {
    for (std::size_t j = 0; j < weights.size(); ++j) {
      const double cell = static_cast<double>(j) * kCell - NoiseShape::kReach;
      density[i] += weights[j] * normal_density((point(i) - cell) / kSmoothing);
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

NoiseShape::NoiseShape(std::span<const Deviation> deviations) {
  if (deviations.size() < kLeast)
    throw Error(ErrorKind::failed, "too few deviations for the shape of noise");
  if (!std::ranges::all_of(deviations, [](const Deviation& one) {
        return std::isfinite(one.value) && std::isfinite(one.error) && one.error >= 0;
      }))
    throw Error(ErrorKind::failed, "a deviation of the shape of noise is not finite");
  const std::vector<double> raw = smoothed(deconvolved(counted(deviations)));
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
