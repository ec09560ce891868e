#include "statistics/noise/noise_model.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <numbers>
#include <optional>

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

// Counts on the grid, for each error. Deviations beyond an end count at that end.
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

// The smoothed weights of the cells, at the points of the table.
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

constexpr std::size_t kMostLevels = 100;
constexpr std::int64_t kShapeRepeats = 6;
constexpr double kLeastDeviation = 1e-8;

// A repeated configuration.
struct Repeats {
  std::int64_t config = 0;
  double level = 0;    // mean of the logarithms
  double squares = 0;  // of the residuals
  double degrees = 0;  // n - 1
};

// By rising level.
std::vector<Repeats> repeats_of(const MeasuredConfigs& measured) {
  std::vector<Repeats> repeats;
  for (std::int64_t c = 0; c < measured.configs(); ++c) {
    const auto times = measured.times_of(c);
    if (times.size() < 2) continue;
    Repeats one{c, measured.mean_of(c), 0, static_cast<double>(times.size()) - 1};
    for (const double time : times) one.squares += (time - one.level) * (time - one.level);
    repeats.push_back(one);
  }
  std::ranges::stable_sort(repeats, {}, &Repeats::level);
  return repeats;
}

// Whole-number times have at least the rounding error.
double least_deviation(const MeasuredConfigs& measured, double level) {
  const double rounding = measured.whole ? std::exp(-level) / std::sqrt(12.0) : 0;
  return std::max(rounding, kLeastDeviation);
}

// A level needs a width: if noise has two modes, repeats that all fell into one mode have small
// residuals and a mean at the edge, and a narrow level would show too little noise.
NoiseModel pooled(const MeasuredConfigs& measured, const std::vector<Repeats>& repeats,
                  const NoiseChoices& choices) {
  double all = 0;
  for (const Repeats& one : repeats) all += one.degrees;
  const double wanted = std::max(choices.level_degrees, all / kMostLevels);
  std::vector<double> levels, deviations;
  double level = 0, squares = 0, degrees = 0, left = all, lowest = repeats.front().level;
  for (const Repeats& one : repeats) {
    level += one.level * one.degrees;
    squares += one.squares;
    degrees += one.degrees;
    left -= one.degrees;
    // Too few remaining residuals join the last level.
    const bool narrow = one.level - lowest < choices.level_width * std::sqrt(squares / degrees);
    if (left > 0 && (degrees < wanted || left < wanted || narrow)) continue;
    const double mean = level / degrees;
    const double least = least_deviation(measured, mean);
    if (levels.empty() || mean > levels.back()) {
      levels.push_back(mean);
      deviations.push_back(std::max(std::sqrt(squares / degrees), least));
    }
    level = squares = degrees = 0;
    lowest = one.level;
  }
  return {std::move(levels), std::move(deviations)};
}

// `model` with shapes; nothing if there are too few residuals.
std::optional<NoiseModel> shaped(const MeasuredConfigs& measured,
                                 const std::vector<Repeats>& repeats, const NoiseModel& model,
                                 std::int64_t wanted) {
  std::int64_t left = 0;
  for (const Repeats& one : repeats)
    left += one.degrees + 1 >= kShapeRepeats ? static_cast<std::int64_t>(one.degrees) + 1 : 0;
  if (wanted == 0 || left < static_cast<std::int64_t>(NoiseShape::kLeast)) return std::nullopt;
  std::vector<NoiseShape> shapes;
  std::vector<double> bounds;
  std::vector<NoiseShape::Deviation> deviations;
  for (const Repeats& one : repeats) {
    if (one.degrees + 1 < kShapeRepeats) continue;
    if (std::ssize(deviations) >= wanted && left >= wanted) {
      shapes.emplace_back(deviations);
      bounds.push_back(one.level);
      deviations.clear();
    }
    const double scale = (one.degrees + 1) / one.degrees / model.deviation(one.level);
    for (const double time : measured.times_of(one.config)) {
      deviations.push_back({(time - one.level) * scale, 1 / std::sqrt(one.degrees)});
      --left;
    }
  }
  shapes.emplace_back(deviations);
  return model.with_shapes(std::move(shapes), std::move(bounds));
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

NoiseModel::NoiseModel(std::vector<double> levels, std::vector<double> deviations, NoiseShape shape)
    : levels_(std::move(levels)), shapes_{std::move(shape)} {
  const bool rising = std::ranges::adjacent_find(levels_, std::greater_equal<>{}) == levels_.end();
  if (levels_.empty() || levels_.size() != deviations.size() || !rising ||
      !std::ranges::all_of(deviations, [](double d) { return d > 0 && std::isfinite(d); }))
    throw Error(ErrorKind::failed, "deviations of noise must be positive, at rising levels");
  for (const double deviation : deviations) log_deviations_.push_back(std::log(deviation));
}

double NoiseModel::deviation(double level) const {
  const auto above = std::ranges::upper_bound(levels_, level);
  if (above == levels_.begin()) return std::exp(log_deviations_.front());
  if (above == levels_.end()) return std::exp(log_deviations_.back());
  const auto i = static_cast<std::size_t>(above - levels_.begin());
  const double share = (level - levels_[i - 1]) / (levels_[i] - levels_[i - 1]);
  return std::exp(log_deviations_[i - 1] + share * (log_deviations_[i] - log_deviations_[i - 1]));
}

NoiseModel NoiseModel::scaled(double factor) const {
  NoiseModel result = *this;
  for (double& deviation : result.log_deviations_) deviation += std::log(factor);
  return result;
}

NoiseModel NoiseModel::with_shapes(std::vector<NoiseShape> shapes,
                                   std::vector<double> bounds) const {
  if (shapes.size() != bounds.size() + 1 || !std::ranges::is_sorted(bounds))
    throw Error(ErrorKind::failed, "shapes of noise need rising bounds between them");
  NoiseModel result = *this;
  result.shapes_ = std::move(shapes);
  result.bounds_ = std::move(bounds);
  return result;
}

const NoiseShape& NoiseModel::shape(double level) const {
  const auto above = std::ranges::upper_bound(bounds_, level);
  return shapes_[static_cast<std::size_t>(above - bounds_.begin())];
}

std::string fault_of_repeats(const MeasuredConfigs& measured) {
  const std::vector<Repeats> repeats = repeats_of(measured);
  if (std::ssize(repeats) < kLeastRepeatedConfigs) {
    return fmt::format("{} configurations were measured more than once, {} are needed",
                       repeats.size(), kLeastRepeatedConfigs);
  }
  if (std::ranges::all_of(repeats, [](const Repeats& one) { return one.squares == 0; }))
    return "repeated measurements never differ, as if they had been copied";
  return {};
}

NoiseEstimate estimate_noise(const MeasuredConfigs& measured, const NoiseChoices& choices) {
  if (std::string fault = fault_of_repeats(measured); !fault.empty())
    throw DataError(std::move(fault));
  const std::vector<Repeats> repeats = repeats_of(measured);
  const NoiseModel normal = pooled(measured, repeats, choices);
  double squares = 0, degrees = 0, scatter = 0;
  for (const Repeats& one : repeats) {
    const double deviation = normal.deviation(one.level);
    const double excess = one.squares / (deviation * deviation) - one.degrees;
    squares += one.squares;
    degrees += one.degrees;
    scatter += excess * excess;
  }
  // The error of a variance, by its sum over configurations. The root has half the relative error.
  const auto found = shaped(measured, repeats, normal, choices.shape_deviations);
  return {found.value_or(normal), std::ssize(repeats), std::sqrt(squares / degrees),
          std::sqrt(scatter) / degrees / 2, found.has_value()};
}

}  // namespace tpudist
