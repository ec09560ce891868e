#pragma once

namespace tpudist {

// Distributions for tests and intervals, from Boost.Math. Degrees of freedom may be fractions. All
// functions throw Error if degrees are not above 0 or a probability is not within (0, 1).

// Student's t: the probability of a value below `x`, and the quantile of `p`.
double t_probability(double x, double degrees);
double t_quantile(double p, double degrees);
// Probability of a value at least as far from 0 as `x`.
double two_sided_p(double x, double degrees);

double chi_square_quantile(double p, double degrees);
// Fisher's F: a mean square of `above` degrees divided by one of `below`.
double f_quantile(double p, double above, double below);
// The upper 95 % bound on a rate with `failures` in `trials` (Clopper and Pearson, Biometrika
// 1934): 1 - 0.05^(1 / trials) without a failure.
double rate_bound(int failures, int trials);

// The power of a two-sided t test at `level` (0.05): the probability that |T| exceeds the quantile.
// T is noncentral t with mean shift `shift` = true difference / its standard error.
double t_test_power(double shift, double degrees, double level);

// E min(most, max(0, -(shift + T))) with Student's T: the mean loss from trusting the sign of an
// estimate that lies `shift` standard errors above 0, if the loss is at most `most`. All in
// standard errors.
double expected_loss(double shift, double degrees, double most);

// Tukey's studentised range: the range of `count` (at least 2) standard normal values, divided by
// an independent standard deviation with `degrees`. The probability that it is below `q`, and the
// quantile of `p`. By quadrature, to 6 digits.
double range_probability(double q, int count, double degrees);
double range_quantile(double p, int count, double degrees);

}  // namespace tpudist
