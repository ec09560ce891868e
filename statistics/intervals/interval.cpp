#include "statistics/intervals/interval.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "core/error.hpp"
#include "core/means.hpp"
#include "statistics/intervals/distributions.hpp"

namespace tpudist {
namespace {

void require_two(std::span<const double> values) {
  if (values.size() < 2)
    throw Error(ErrorKind::failed,
                fmt::format("{} values have no spread; at least 2 are needed", values.size()));
}

// The variance of the mean of independent values.
VarianceEstimate mean_variance(std::span<const double> values) {
  require_two(values);
  const auto n = static_cast<double>(values.size());
  return {sample_variance(values) / n, n - 1};
}

}  // namespace

Interval t_interval(double value, const VarianceEstimate& variance, double level, Reach reach) {
  const double error = std::sqrt(variance.variance);
  if (error < kScoreRounding) return {value, 0, variance.degrees, kNone, kNone};
  const double half = t_quantile((1 + level) / 2, variance.degrees) * error;
  return {value, error, variance.degrees, std::max(value - half, reach.low),
          std::min(value + half, reach.high)};
}

double t_test_p(const Interval& estimate) {
  if (!estimate.is_known()) return kNone;
  return two_sided_p(estimate.value / estimate.error, estimate.degrees);
}

Interval mean_interval(std::span<const double> values, double level, Reach reach) {
  return t_interval(mean(values), mean_variance(values), level, reach);
}

Interval difference_interval(std::span<const double> a, std::span<const double> b, double level,
                             Reach reach) {
  const std::array terms{mean_variance(a), mean_variance(b)};
  VarianceEstimate variance = satterthwaite(terms);
  if (std::min(a.size(), b.size()) == 2 && a.size() != b.size()) variance.degrees = 1;
  return t_interval(mean(a) - mean(b), variance, level, reach);
}

Interval jackknife_interval(double whole, std::span<const double> without, double level,
                            Reach reach) {
  require_two(without);
  const auto n = static_cast<double>(without.size());
  return t_interval(whole, {squares_around(without, mean(without)) * (n - 1) / n, n - 1}, level,
                    reach);
}

VarianceEstimate satterthwaite(std::span<const VarianceEstimate> terms) {
  if (terms.empty()) throw Error(ErrorKind::failed, "no variance to add");
  double sum = 0, uncertainty = 0;
  for (const VarianceEstimate& term : terms) {
    if (term.variance < 0) throw Error(ErrorKind::failed, "a variance is below 0");
    sum += term.variance;
    if (term.variance > 0) uncertainty += term.variance * term.variance / term.degrees;
  }
  if (uncertainty == 0) return {0, terms.front().degrees};
  return {sum, sum * sum / uncertainty};
}

VarianceEstimate howe(std::span<const VarianceEstimate> terms, double level) {
  const auto factor = [level](double degrees) {
    return std::pow(t_quantile((1 + level) / 2, degrees), 2);
  };
  VarianceEstimate sum = satterthwaite(terms);
  double square = 0, most = sum.degrees;
  for (const VarianceEstimate& term : terms) {
    if (term.variance == 0) continue;
    square += factor(term.degrees) * term.variance;
    sum.degrees = std::min(sum.degrees, term.degrees);
    most = std::max(most, term.degrees);
  }
  while (most > sum.degrees * (1 + 1e-9)) {
    const double middle = std::sqrt(sum.degrees * most);
    (factor(middle) * sum.variance > square ? sum.degrees : most) = middle;
  }
  return sum;
}

double howe_p(double value, std::span<const VarianceEstimate> terms) {
  const double error = std::sqrt(satterthwaite(terms).variance);
  if (std::isnan(value) || !(error >= kScoreRounding)) return kNone;
  double low = 1e-100, high = 1;
  for (int i = 0; i < 60; ++i) {
    const double middle = std::sqrt(low * high);
    double square = 0;  // of the half width at level 1 - middle
    for (const VarianceEstimate& term : terms) {
      if (term.variance > 0)
        square += std::pow(t_quantile(middle / 2, term.degrees), 2) * term.variance;
    }
    (square > value * value ? low : high) = middle;
  }
  return high;
}

}  // namespace tpudist
