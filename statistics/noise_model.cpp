#include "statistics/noise_model.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>

#include "core/error.hpp"

namespace tpudist {
namespace {

// Degrees of freedom of a level's deviation: a compromise between its error (8 %) and the
// resolution.
constexpr double kDegrees = 80;
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

// Times in whole numbers have at least the rounding error.
double least_deviation(const MeasuredConfigs& measured, double level) {
  const double rounding = measured.whole ? std::exp(-level) / std::sqrt(12.0) : 0;
  return std::max(rounding, kLeastDeviation);
}

// `width`: if noise has two modes, repeats that all fell into one have small residuals and a mean
// at the edge; narrow levels would then show too little noise.
NoiseModel pooled(const MeasuredConfigs& measured, const std::vector<Repeats>& repeats,
                  double width) {
  double all = 0;
  for (const Repeats& one : repeats) all += one.degrees;
  const double wanted = std::max(kDegrees, all / kMostLevels);
  std::vector<double> levels, deviations;
  double level = 0, squares = 0, degrees = 0, left = all, lowest = repeats.front().level;
  for (const Repeats& one : repeats) {
    level += one.level * one.degrees;
    squares += one.squares;
    degrees += one.degrees;
    left -= one.degrees;
    // Residuals that are too few for their own level are added to the last one.
    const bool narrow = one.level - lowest < width * std::sqrt(squares / degrees);
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

// The same with shapes.
NoiseModel shaped(const MeasuredConfigs& measured, const std::vector<Repeats>& repeats,
                  const NoiseModel& model, std::int64_t wanted) {
  std::int64_t left = 0;
  for (const Repeats& one : repeats)
    left += one.degrees + 1 >= kShapeRepeats ? static_cast<std::int64_t>(one.degrees) + 1 : 0;
  if (left < static_cast<std::int64_t>(NoiseShape::kLeast)) return model;
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
  const NoiseModel normal = pooled(measured, repeats, choices.level_width);
  double squares = 0, degrees = 0, scatter = 0;
  for (const Repeats& one : repeats) {
    const double deviation = normal.deviation(one.level);
    const double excess = one.squares / (deviation * deviation) - one.degrees;
    squares += one.squares;
    degrees += one.degrees;
    scatter += excess * excess;
  }
  // The error of a variance from its sum over configurations; the relative error of its root is
  // half of it.
  return {choices.shape_deviations > 0 ? shaped(measured, repeats, normal, choices.shape_deviations)
                                       : normal,
          std::ssize(repeats), std::sqrt(squares / degrees), std::sqrt(scatter) / degrees / 2};
}

}  // namespace tpudist
