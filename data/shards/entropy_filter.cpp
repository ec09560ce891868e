#include "data/shards/entropy_filter.hpp"

#include <algorithm>
#include <cmath>

namespace tpudist {
namespace {

constexpr std::int64_t kBlock = 100, kWindow = 5;
constexpr double kLeastShare = 0.1, kEps = 1e-3;

std::vector<double> mapped_times(std::span<const std::int64_t> times) {
  const auto [least, most] = std::ranges::minmax(times);
  const auto low = static_cast<double>(least), high = static_cast<double>(most);
  std::vector<double> mapped;
  for (const std::int64_t time : times)
    mapped.push_back((static_cast<double>(time) - low + kEps / 2) / (high - low + kEps));
  return mapped;
}

// The divergence of two lists of values, each normalised to the sum 1.
double divergence(std::span<const double> of, std::span<const double> from) {
  double sum_of = 0, sum_from = 0, result = 0;
  for (const double value : of) sum_of += value;
  for (const double value : from) sum_from += value;
  for (std::size_t i = 0; i < of.size(); ++i) {
    const double p = of[i] / sum_of;
    result += p * std::log(p / (from[i] / sum_from));
  }
  return result;
}

std::vector<double> smoothed(const std::vector<double>& values) {
  const std::int64_t count = std::ssize(values);
  std::vector<double> means;
  for (std::int64_t i = 0; i < count; ++i) {
    double sum = 0;
    for (std::int64_t j = std::max<std::int64_t>(i - kWindow / 2, 0);
         j <= std::min(i + kWindow / 2, count - 1); ++j)
      sum += values[j];
    means.push_back(sum / kWindow);
  }
  return means;
}

}  // namespace

std::vector<bool> kept_by_entropy(std::span<const std::int64_t> times, double threshold) {
  std::vector<bool> kept(times.size());
  const std::int64_t blocks = std::ssize(times) / kBlock;
  if (blocks < 2) return kept;
  const std::vector<double> mapped = mapped_times(times);
  const auto block = [&](std::int64_t number) {
    return std::span(mapped).subspan(static_cast<std::size_t>(number * kBlock), kBlock);
  };
  std::vector<double> values;  // between a block and the next
  for (std::int64_t b = 1; b < blocks; ++b) values.push_back(divergence(block(b), block(b - 1)));
  values = smoothed(values);
  const auto reaches = [&](double value) { return value >= threshold; };
  if (static_cast<double>(std::ranges::count_if(values, reaches)) <
      kLeastShare * static_cast<double>(values.size()))
    return kept;
  for (std::int64_t b = 0; b < blocks; ++b) {
    const bool before = b == 0 || reaches(values[b - 1]);
    const bool after = b + 1 == blocks || reaches(values[b]);
    if (before && after) std::fill_n(kept.begin() + b * kBlock, kBlock, true);
  }
  return kept;
}

}  // namespace tpudist
