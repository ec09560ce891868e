#include "statistics/ranking/measured_correction.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <set>
#include <unordered_map>
#include <utility>

#include "core/error.hpp"
#include "statistics/ranking/metrics.hpp"

namespace tpudist {
namespace {

constexpr std::size_t kMostUsed = 500, kLeastMeasured = 3;
// Of the score among the features: a few measurements shall not turn the model's order round.
constexpr double kSlopeWeight = 0.1;

// The deviation around the mean; 0 for equal values.
double deviation_of(std::span<const double> values) {
  return std::sqrt(squares_around(values, mean(values)) / static_cast<double>(values.size()));
}

// The columns of states [rows][width] in which the chosen rows differ; of columns that differ alike
// the first.
std::vector<std::size_t> differing_columns(std::span<const std::int32_t> states, std::size_t width,
                                           std::span<const std::size_t> rows) {
  std::vector<std::size_t> columns;
  std::set<std::vector<std::int32_t>> seen;  // states by first occurrence
  for (std::size_t column = 0; column < width; ++column) {
    std::map<std::int32_t, std::int32_t> numbers;
    std::vector<std::int32_t> own;
    for (const std::size_t row : rows) {
      const auto next = static_cast<std::int32_t>(numbers.size());
      own.push_back(numbers.emplace(states[row * width + column], next).first->second);
    }
    if (numbers.size() > 1 && seen.insert(std::move(own)).second) columns.push_back(column);
  }
  return columns;
}

// The inverse of a symmetric positive definite matrix [n, n], by Gauss and Jordan.
std::vector<double> inverse(std::vector<double> a, std::size_t n) {
  for (std::size_t k = 0; k < n; ++k) {
    const double pivot = std::exchange(a[k * n + k], 1);
    for (std::size_t j = 0; j < n; ++j) a[k * n + j] /= pivot;
    for (std::size_t i = 0; i < n; ++i) {
      if (i == k) continue;
      const double factor = std::exchange(a[i * n + k], 0);
      for (std::size_t j = 0; j < n; ++j) a[i * n + j] -= factor * a[k * n + j];
    }
  }
  return a;
}

// A ridge regression in its dual form.
struct RidgeFit {
  std::vector<double> weights;  // [n] of the measured configurations; empty: none
  std::vector<double> errors;   // [n] leave-one-out
  double ridge = std::numeric_limits<double>::infinity();
};

RidgeFit best_fit(const std::vector<double>& kernel, const std::vector<double>& residuals) {
  const std::size_t n = residuals.size();
  RidgeFit best{{}, residuals};
  for (const double ridge : kRidges) {
    std::vector<double> matrix = kernel;
    for (std::size_t i = 0; i < n; ++i) matrix[i * n + i] += ridge;
    matrix = inverse(std::move(matrix), n);
    RidgeFit fit{std::vector<double>(n), std::vector<double>(n), ridge};
    for (std::size_t i = 0; i < n; ++i) {
      for (std::size_t j = 0; j < n; ++j) fit.weights[i] += matrix[i * n + j] * residuals[j];
      fit.errors[i] = fit.weights[i] / matrix[i * n + i];
    }
    if (squares_around(fit.errors, 0) < squares_around(best.errors, 0)) best = std::move(fit);
  }
  return best;
}

// At most kMostUsed of the measured rows, evenly spaced by time.
std::vector<std::size_t> used_rows(std::vector<std::size_t> rows,
                                   const std::vector<double>& times) {
  if (rows.size() <= kMostUsed) return rows;
  std::ranges::stable_sort(rows, {}, [&](std::size_t row) { return times[row]; });
  std::vector<std::size_t> used;
  for (std::size_t i = 0; i < kMostUsed; ++i) used.push_back(rows[i * rows.size() / kMostUsed]);
  return used;
}

}  // namespace

MeasuredCorrection correct_by_measurements(std::span<const double> scores,
                                           std::span<const std::int32_t> states,
                                           std::span<const Measurement> measurements) {
  const std::size_t configs = scores.size(), width = configs == 0 ? 0 : states.size() / configs;
  MeasuredCorrection result;
  result.scores.assign(scores.begin(), scores.end());
  result.times.assign(configs, kNone);
  result.predict = [](double score, std::span<const std::int32_t>) { return score; };
  std::map<std::size_t, std::vector<double>> logs;  // of the measured configurations
  for (const auto& [config, time] : measurements) {
    if (config >= configs || states.size() != configs * width || !(time > 0) || std::isinf(time))
      throw Error(ErrorKind::failed, "a measurement is of no configuration, or of no time");
    logs[config].push_back(std::log(time));
  }
  std::vector<std::size_t> rows;
  for (const auto& [config, own] : logs) {
    rows.push_back(config);
    result.times[config] = std::exp(mean(own));
  }
  result.measured = rows.size();
  if (rows.size() < kLeastMeasured) {
    result.why_not = "it takes three measured configurations";
    return result;
  }
  rows = used_rows(std::move(rows), result.times);
  const std::size_t n = rows.size();
  std::vector<double> y, s;
  for (const std::size_t row : rows) {
    y.push_back(std::log(result.times[row]));
    s.push_back(scores[row]);
  }
  result.tau_before = kendall_tau_b(s, y);
  const double y_mean = mean(y), s_mean = mean(s), y_scale = deviation_of(y);
  if (y_scale <= 1e-12 * std::abs(y_mean)) {
    result.why_not = "all their times are equal";
    return result;
  }
  double s_scale = deviation_of(s);
  if (s_scale == 0) s_scale = std::max(deviation_of(scores), 1e-300);
  const auto standard = [&](double score) { return (score - s_mean) / s_scale; };
  const std::vector<std::size_t> columns = differing_columns(states, width, rows);
  const double share = columns.empty() ? 0 : 1 / static_cast<double>(columns.size());
  std::vector<double> residuals, kernel(n * n);
  for (std::size_t i = 0; i < n; ++i) {
    residuals.push_back((y[i] - y_mean) / y_scale - standard(s[i]));
    for (std::size_t j = 0; j < n; ++j) {
      double alike = 1 + kSlopeWeight * standard(s[i]) * standard(s[j]);
      for (const std::size_t column : columns)
        alike += states[rows[i] * width + column] == states[rows[j] * width + column] ? share : 0;
      kernel[i * n + j] = alike;
    }
  }
  const RidgeFit fit = best_fit(kernel, residuals);
  result.ridge = fit.ridge;
  std::vector<double> predicted;  // without the configuration itself
  for (std::size_t i = 0; i < n; ++i)
    predicted.push_back((y[i] - y_mean) / y_scale - fit.errors[i]);
  result.tau_after = kendall_tau_b(predicted, y);
  double constant = 0, slope = 1;
  std::vector<std::unordered_map<std::int32_t, double>> by_state(columns.size());
  for (std::size_t i = 0; i < fit.weights.size(); ++i) {
    constant += fit.weights[i];
    slope += kSlopeWeight * fit.weights[i] * standard(s[i]);
    for (std::size_t c = 0; c < columns.size(); ++c)
      by_state[c][states[rows[i] * width + columns[c]]] += share * fit.weights[i];
  }
  result.predict = [=, by_state = std::move(by_state)](double score,
                                                       std::span<const std::int32_t> own) {
    double value = constant + slope * ((score - s_mean) / s_scale);
    for (std::size_t c = 0; c < columns.size(); ++c) {
      const auto known = by_state[c].find(own[columns[c]]);
      if (known != by_state[c].end()) value += known->second;
    }
    return y_mean + y_scale * value;
  };
  for (std::size_t k = 0; k < configs; ++k)
    result.scores[k] = std::isnan(result.times[k])
                           ? result.predict(scores[k], states.subspan(k * width, width))
                           : std::log(result.times[k]);
  return result;
}

}  // namespace tpudist
