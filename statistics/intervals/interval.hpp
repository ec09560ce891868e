#pragma once

#include <limits>
#include <span>

namespace tpudist {

// The level of every interval, unless said otherwise.
inline constexpr double kIntervalLevel = 0.95;
// Differences with a p above this are not called different.
inline constexpr double kSignificance = 0.05;

// An estimated variance with its degrees of freedom.
struct VarianceEstimate {
  double variance = 0;
  double degrees = 0;
};

// Scores that differ by less are equal: the order of summation changes a mean by up to as much.
inline constexpr double kScoreRounding = 1e-12;

// An estimate with an interval: value +- quantile of Student's t x standard error. Equal values do
// not show their spread, and an interval with a standard error of 0 would promise certainty.
struct Interval {
  double value = 0;
  double error = 0;    // standard error, the square root of the estimate's variance
  double degrees = 0;  // of freedom
  double low = 0, high = 0;

  // False if the standard error is 0: the spread is unknown, and the ends are NaN.
  bool is_known() const { return error > 0; }
};

// The possible values of a score, or of a difference. No interval reaches beyond.
struct Reach {
  double low = -std::numeric_limits<double>::infinity();
  double high = std::numeric_limits<double>::infinity();

  Reach of_differences() const { return {low - high, high - low}; }
};

// A standard error below kScoreRounding is 0. Throws Error if the degrees of freedom are not above
// 0.
Interval t_interval(double value, const VarianceEstimate& variance, double level = kIntervalLevel,
                    Reach reach = {});

// Two-sided p of the estimate's t against 0; NaN if the interval is unknown.
double t_test_p(const Interval& estimate);

// Mean +- t(n - 1) s / sqrt(n) of n independent values, at least 2; Error otherwise.
Interval mean_interval(std::span<const double> values, double level = kIntervalLevel,
                       Reach reach = {});

// Difference of the means of two independent groups, with Welch's variance and degrees of freedom
// (Biometrika 1947). Each group needs at least 2 values; Error otherwise. If only one group has 2
// values, the degrees are 1: Welch's would call equal groups different at 0.05 in up to 12 % (2 and
// 10 values), one degree does so in at most 4 %.
Interval difference_interval(std::span<const double> a, std::span<const double> b,
                             double level = kIntervalLevel, Reach reach = {});

// Delete-one jackknife (Tukey 1958) of a statistic of n parts: `whole` from all parts, without[i]
// from all but part i. Interval: whole +- t(n - 1) sqrt((n - 1) / n sum (without[i] - mean)^2). At
// least 2 parts; Error otherwise.
Interval jackknife_interval(double whole, std::span<const double> without,
                            double level = kIntervalLevel, Reach reach = {});

// Sum V of independent variance estimates, with Satterthwaite's degrees of freedom (Biometrics
// Bulletin 1946), V^2 / sum(v_i^2 / degrees_i). Ignores terms of 0. Throws Error if a term is
// negative or there is none.
VarianceEstimate satterthwaite(std::span<const VarianceEstimate> terms);

// The same sum for an interval at `level` by Howe (Journal of the American Statistical Association
// 1974): half width^2 = sum t(degrees_i)^2 v_i. The degrees give Student's t that half width.
// Unlike Satterthwaite's, they do not rise if a term of few degrees happens to be small.
VarianceEstimate howe(std::span<const VarianceEstimate> terms, double level = kIntervalLevel);

// Two-sided p of `value` against 0 by Howe's rule: the interval at level 1 - p ends at 0. NaN if
// the sum is 0 (Interval::is_known).
double howe_p(double value, std::span<const VarianceEstimate> terms);

}  // namespace tpudist
