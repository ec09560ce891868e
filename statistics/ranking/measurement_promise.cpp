#include "statistics/ranking/measurement_promise.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <string_view>
#include <vector>

#include "core/error.hpp"
#include "core/means.hpp"
#include "statistics/ranking/metrics.hpp"

namespace tpudist {
namespace {

constexpr double kShareRounding = 1e-9;  // of shares, such as 9 / 10 against a confidence of 0.9

}  // namespace

std::optional<std::int64_t> needed_measurements(std::span<const double> scores,
                                                std::span<const double> times, double within,
                                                std::span<const std::int32_t> config) {
  if (scores.size() != times.size() || (!config.empty() && config.size() != times.size()))
    throw Error(ErrorKind::failed, "scores, times and configurations differ in number");
  if (!all_finite(scores) || !all_finite(times)) return std::nullopt;
  std::vector<double> own_scores(scores.begin(), scores.end()),
      own_times(times.begin(), times.end());
  if (!config.empty()) {
    own_scores.clear();
    own_times.clear();
    each_config(config, [&](std::span<const std::size_t> rows) {
      double sum = 0;
      for (const std::size_t row : rows) sum += times[row];
      own_scores.push_back(scores[rows.front()]);
      own_times.push_back(sum / static_cast<double>(rows.size()));
    });
  }
  if (own_times.size() < 2) return std::nullopt;
  const double best = std::ranges::min(own_times);
  if (!(best > 0)) return std::nullopt;
  const auto is_close = [&](std::size_t i) { return own_times[i] <= best * (1 + within); };
  double first = std::numeric_limits<double>::infinity();
  for (std::size_t i = 0; i < own_times.size(); ++i) {
    if (is_close(i)) first = std::min(first, own_scores[i]);
  }
  std::int64_t needed = 1;
  for (std::size_t i = 0; i < own_times.size(); ++i)
    needed += !is_close(i) && own_scores[i] <= first;
  return needed;
}

MeasurementPromise promise_measurements(std::span<const std::string> families,
                                        std::span<const std::int64_t> needed, double confidence) {
  if (families.size() != needed.size() || !(confidence > 0) || !(confidence < 1))
    throw Error(ErrorKind::failed, "a promise needs a family for each graph, and a confidence");
  std::map<std::string_view, double> sizes;
  for (const std::string& family : families) ++sizes[family];
  MeasurementPromise promise;
  promise.families = static_cast<int>(sizes.size());
  promise.graphs = static_cast<int>(needed.size());
  promise.least_families = static_cast<int>(
      std::min(1e9, std::ceil(confidence / (1 - confidence) * (1 - kShareRounding))));
  std::map<std::int64_t, double> weights;  // by need
  for (std::size_t g = 0; g < needed.size(); ++g)
    weights[needed[g]] += 1 / ((promise.families + 1) * sizes[families[g]]);
  double reached = 0;
  for (const auto& [need, weight] : weights) {
    reached += weight;
    if (reached < confidence - kShareRounding) continue;
    promise.count = need;
    break;
  }
  return promise;
}

}  // namespace tpudist
