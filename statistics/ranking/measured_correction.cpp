#include "statistics/ranking/measured_correction.hpp"

#include <algorithm>
#include <cmath>
#include <functional>
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
// The weight of the score as a feature: small, so that a few measurements cannot reverse the model's
// order.
constexpr double kSlopeWeight = 0.1;

struct Scale {
  explicit Scale(std::span<const double> values)
      : centre(mean(values)),
        deviation(std::sqrt(squares_around(values, centre) / static_cast<double>(values.size()))) {}
  // False if the values differ by rounding at most.
  bool differs() const { return deviation > 1e-12 * std::abs(centre); }
  double operator()(double value) const { return (value - centre) / deviation; }

  double centre, deviation;
};

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

// [c] the geometric mean of a configuration's times; NaN if it is not measured.
std::vector<double> mean_times(std::size_t configs, std::span<const Measurement> measurements) {
  std::vector<double> times(configs, kNone), logs(configs), counts(configs);
  for (const auto& [config, time] : measurements) {
    if (config >= configs || !(time > 0) || std::isinf(time))
      throw Error(ErrorKind::failed, "a measurement is of no configuration, or of no time");
    logs[config] += std::log(time);
    times[config] = ++counts[config] == 1 ? time : std::exp(logs[config] / counts[config]);
  }
  return times;
}

// The features of the measured configurations: scaled scores, and states in the columns that differ.
struct Features {
  std::vector<double> z;                                                    // [n]
  std::vector<std::vector<std::int32_t>> states;                            // [n][columns]
  double share = 1 / std::max(1.0, static_cast<double>(states[0].size()));  // of a column

  // [n][n]
  std::vector<double> kernel() const {
    std::vector<double> kernel;
    for (std::size_t i = 0; i < z.size(); ++i) {
      for (std::size_t j = 0; j < z.size(); ++j)
        kernel.push_back(1 + kSlopeWeight * z[i] * z[j] +
                         share * std::inner_product(states[i].begin(), states[i].end(),
                                                    states[j].begin(), 0.0, std::plus<>(),
                                                    std::equal_to<>()));
    }
    return kernel;
  }
};

// The scaled score plus the fitted residual, as the logarithm of a time.
MeasuredCorrection::Predict predictor(const Features& features,
                                      const std::vector<std::size_t>& columns,
                                      const std::vector<double>& weights, Scale s, Scale y) {
  double constant = 0, slope = 1;
  std::vector<std::unordered_map<std::int32_t, double>> by_state(columns.size());
  for (std::size_t i = 0; i < weights.size(); ++i) {
    constant += weights[i];
    slope += kSlopeWeight * weights[i] * features.z[i];
    for (std::size_t c = 0; c < columns.size(); ++c)
      by_state[c][features.states[i][c]] += features.share * weights[i];
  }
  return [=](double score, std::span<const std::int32_t> states) {
    double value = constant + slope * s(score);
    for (std::size_t c = 0; c < columns.size(); ++c) {
      const auto known = by_state[c].find(states[columns[c]]);
      if (known != by_state[c].end()) value += known->second;
    }
    return y.centre + y.deviation * value;
  };
}

}  // namespace

MeasuredCorrection correct_by_measurements(std::span<const double> scores,
                                           std::span<const std::int32_t> states,
                                           std::span<const Measurement> measurements) {
  const std::size_t configs = scores.size(), width = configs == 0 ? 0 : states.size() / configs;
  if (states.size() != configs * width)
    throw Error(ErrorKind::failed, "a configuration has no states, or too many");
  MeasuredCorrection result;
  result.scores.assign(scores.begin(), scores.end());
  result.times = mean_times(configs, measurements);
  result.predict = [](double score, std::span<const std::int32_t>) { return score; };
  std::vector<std::size_t> rows;
  for (std::size_t k = 0; k < configs; ++k) {
    if (!std::isnan(result.times[k])) rows.push_back(k);
  }
  result.measured = rows.size();
  if (rows.size() < kLeastMeasured) {
    result.why_not = "it takes three measured configurations";
    return result;
  }
  rows = used_rows(std::move(rows), result.times);
  std::vector<double> logs, own;
  for (const std::size_t row : rows) {
    logs.push_back(std::log(result.times[row]));
    own.push_back(scores[row]);
  }
  result.tau_before = kendall_tau_b(own, logs);
  const Scale y(logs);
  if (!y.differs()) {
    result.why_not = "all their times are equal";
    return result;
  }
  Scale s(own);
  if (!s.differs()) s.deviation = std::max(Scale(scores).deviation, 1e-300);
  const std::vector<std::size_t> columns = differing_columns(states, width, rows);
  std::vector<std::vector<std::int32_t>> differing(rows.size());
  std::vector<double> z, residuals;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    for (const std::size_t column : columns)
      differing[i].push_back(states[rows[i] * width + column]);
    z.push_back(s(own[i]));
    residuals.push_back(y(logs[i]) - z[i]);
  }
  const Features features{z, differing};
  const RidgeFit fit = best_fit(features.kernel(), residuals);
  result.ridge = fit.ridge;
  std::vector<double> predicted;  // without the configuration itself
  for (std::size_t i = 0; i < rows.size(); ++i) predicted.push_back(y(logs[i]) - fit.errors[i]);
  result.tau_after = kendall_tau_b(predicted, logs);
  result.predict = predictor(features, columns, fit.weights, s, y);
  for (std::size_t k = 0; k < configs; ++k)
    result.scores[k] = std::isnan(result.times[k])
                           ? result.predict(scores[k], states.subspan(k * width, width))
                           : std::log(result.times[k]);
  return result;
}

}  // namespace tpudist
