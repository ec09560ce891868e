#include "core/means.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <numeric>
#include <utility>

namespace tpudist {

bool all_finite(std::span<const double> values) {
  return std::ranges::all_of(values, [](double value) { return std::isfinite(value); });
}

double mean(std::span<const double> values) {
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

double mean_of_known(std::span<const double> values) {
  double sum = 0, count = 0;
  for (const double value : values) {
    if (std::isnan(value)) continue;
    sum += value;
    ++count;
  }
  return count > 0 ? sum / count : kNone;
}

double squares_around(std::span<const double> values, double centre) {
  double sum = 0;
  for (const double value : values) sum += (value - centre) * (value - centre);
  return sum;
}

double sample_variance(std::span<const double> values) {
  return squares_around(values, mean(values)) / static_cast<double>(values.size() - 1);
}

double median(std::vector<double> values) {
  std::ranges::sort(values);
  const std::size_t middle = values.size() / 2;
  return values.size() % 2 == 1 ? values[middle] : (values[middle - 1] + values[middle]) / 2;
}

double quantile(std::vector<double> values, double q) {
  std::ranges::sort(values);
  const double at = q * static_cast<double>(values.size() - 1);
  const auto low = static_cast<std::size_t>(std::floor(at));
  const std::size_t high = std::min(low + 1, values.size() - 1);
  return values[low] + (at - static_cast<double>(low)) * (values[high] - values[low]);
}

std::vector<double> mean_ranks(std::span<const double> values) {
  std::vector<std::size_t> order(values.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::sort(order, {}, [&](std::size_t i) { return values[i]; });
  std::vector<double> ranks(values.size());
  for (std::size_t begin = 0, end = 0; begin < order.size(); begin = end) {
    while (end < order.size() && values[order[end]] == values[order[begin]]) ++end;
    for (std::size_t k = begin; k < end; ++k)
      ranks[order[k]] = 0.5 * static_cast<double>(begin + 1 + end);
  }
  return ranks;
}

std::vector<std::int32_t> dense_ranks(std::span<const double> values) {
  std::vector<std::pair<double, std::int32_t>> sorted(values.size());
  for (std::size_t i = 0; i < values.size(); ++i)
    sorted[i] = {values[i], static_cast<std::int32_t>(i)};
  std::ranges::sort(sorted);
  std::vector<std::int32_t> ranks(values.size());
  std::int32_t rank = 0;
  for (std::size_t i = 0; i < sorted.size(); ++i) {
    if (i > 0 && sorted[i].first != sorted[i - 1].first) ++rank;  // -0.0 equals 0.0
    ranks[static_cast<std::size_t>(sorted[i].second)] = rank;
  }
  return ranks;
}

}  // namespace tpudist
