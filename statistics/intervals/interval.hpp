#pragma once

#include <limits>
#include <span>

namespace tpudist {

// The level of every interval, unless said otherwise.
inline constexpr double kIntervalLevel = 0.95;

// An estimated variance with its degrees of freedom.
struct VarianceEstimate {
  double variance = 0;
  double degrees = 0;
};

// Scores that differ by less are equal: means of the same scores in another order differ so.
inline constexpr double kScoreRounding = 1e-12;

// An estimate with an interval: value +- quantile of Student's t x standard error. Equal values say
// nothing of their spread, and with a standard error of 0 an interval would promise certainty.
struct Interval {
  double value = 0;
  double error = 0;    // standard error, the square root of the estimate's variance
  double degrees = 0;  // of freedom
  double low = 0, high = 0;

  // False where the standard error is 0: the spread is not known, and the ends are NaN.
  bool is_known() const { return error > 0; }
};

// What a score can be, or a difference of two. No interval reaches beyond.
struct Reach {
  double low = -std::numeric_limits<double>::infinity();
  double high = std::numeric_limits<double>::infinity();

  Reach of_differences() const { return {low - high, high - low}; }
};

// A standard error below kScoreRounding is 0. Throws Error where the degrees of freedom are not
// above 0.
Interval t_interval(double value, const VarianceEstimate& variance, double level = kIntervalLevel,
                    Reach reach = {});

// Two-sided p of the estimate's t against 0; NaN where the interval is not known.
double t_test_p(const Interval& estimate);

// Mean +- t(n - 1) s / sqrt(n) of n independent values, at least 2; Error otherwise.
Interval mean_interval(std::span<const double> values, double level = kIntervalLevel,
                       Reach reach = {});

// Difference of the means of two independent groups, each of at least 2 values, with Welch's
// variance and degrees of freedom (Biometrika 1947). Error otherwise. Where one group has 2 values
// and the other more, there is one degree of freedom: with Welch's degrees equal groups are called
// different at 0.05 in up to 12 % (2 and 10 values), with one in at most 4 %.
Interval difference_interval(std::span<const double> a, std::span<const double> b,
                             double level = kIntervalLevel, Reach reach = {});

// Delete-one jackknife (Tukey 1958) of a statistic of n parts: `whole` from all parts, without[i]
// from all but part i. Interval: whole +- t(n - 1) sqrt((n - 1) / n sum (without[i] - their
// mean)^2). At least 2 parts; Error otherwise.
Interval jackknife_interval(double whole, std::span<const double> without,
                            double level = kIntervalLevel, Reach reach = {});

// A standard deviation with an interval, which is not symmetric in general.
struct DeviationInterval {
  double deviation = 0, low = 0, high = 0;
};

// Sum V of independent variance estimates, with Satterthwaite's degrees of freedom (Biometrics
// Bulletin 1946), V^2 / sum(v_i^2 / degrees_i). Terms of 0 are ignored. Error where one is negative
// or there is none.
VarianceEstimate satterthwaite(std::span<const VarianceEstimate> terms);

// The same sum for an interval at `level` by Howe (Journal of the American Statistical Association
// 1974): half width^2 = sum t(degrees_i)^2 v_i. The degrees are those with which Student's t has
// that half width: unlike Satterthwaite's they do not rise where a term of few happens to be small.
VarianceEstimate howe(std::span<const VarianceEstimate> terms, double level = kIntervalLevel);

// Two-sided p of `value` against 0 by the same rule: its interval at level 1 - p ends at 0. NaN where
// the sum is 0 (Interval::is_known).
double howe_p(double value, std::span<const VarianceEstimate> terms);

}  // namespace tpudist
