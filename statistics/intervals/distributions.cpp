#include "statistics/intervals/distributions.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <boost/math/distributions/beta.hpp>
#include <boost/math/distributions/chi_squared.hpp>
#include <boost/math/distributions/fisher_f.hpp>
#include <boost/math/distributions/non_central_t.hpp>
#include <boost/math/distributions/students_t.hpp>
#include <boost/math/quadrature/gauss.hpp>
#include <boost/math/quadrature/gauss_kronrod.hpp>
#include <cmath>
#include <numbers>

#include "core/error.hpp"

namespace tpudist {
namespace {

using boost::math::cdf;
using boost::math::complement;
using StudentT = boost::math::students_t;
// double, because long double takes ten times as long and 12 digits suffice.
using Plain = boost::math::policies::policy<boost::math::policies::promote_double<false>>;
using NoncentralT = boost::math::non_central_t_distribution<double, Plain>;

// Beyond, t is normal to all digits, and Boost's series are slow.
constexpr double kMostDegrees = 1e9;
// With a larger shift the test always finds the difference.
constexpr double kLargestShift = 38;

// Beyond, the normal density is negligible.
constexpr double kFarNormal = 8;
using Quadrature = boost::math::quadrature::gauss<double, 61>;

double below(double z) {
  return 0.5 * std::erfc(-z / std::numbers::sqrt2);
}

double checked_degrees(double degrees) {
  if (!(degrees > 0))
    throw Error(ErrorKind::failed, fmt::format("{} cannot be degrees of freedom", degrees));
  return std::min(degrees, kMostDegrees);
}

double checked_probability(double p) {
  if (!(p > 0 && p < 1))
    throw Error(ErrorKind::failed, fmt::format("{} is no probability within (0, 1)", p));
  return p;
}

}  // namespace

double t_probability(double x, double degrees) {
  return cdf(StudentT(checked_degrees(degrees)), x);
}

double t_quantile(double p, double degrees) {
  return quantile(StudentT(checked_degrees(degrees)), checked_probability(p));
}

double two_sided_p(double x, double degrees) {
  return 2 * cdf(complement(StudentT(checked_degrees(degrees)), std::abs(x)));
}

double chi_square_quantile(double p, double degrees) {
  return quantile(boost::math::chi_squared(checked_degrees(degrees)), checked_probability(p));
}

double f_quantile(double p, double above, double below) {
  return quantile(boost::math::fisher_f(checked_degrees(above), checked_degrees(below)),
                  checked_probability(p));
}

double rate_bound(int failures, int trials) {
  if (failures == trials) return 1;
  return quantile(boost::math::beta_distribution(failures + 1.0, 1.0 * (trials - failures)), 0.95);
}

double t_test_power(double shift, double degrees, double level) {
  degrees = checked_degrees(degrees);
  const double bound = t_quantile(1 - level / 2, degrees);
  shift = std::abs(shift);
  if (shift == 0) return level;
  if (shift > kLargestShift && shift > 2 * bound) return 1;
  const NoncentralT shifted(degrees, shift);
  return std::min(1.0, cdf(complement(shifted, bound)) + cdf(shifted, -bound));
}

double expected_loss(double shift, double degrees, double most) {
  const StudentT t(checked_degrees(degrees));
  const auto tail = [&](double x) { return cdf(complement(t, x)); };
  // The loss is the integral of the probability of losing more.
  return boost::math::quadrature::gauss_kronrod<double, 31>::integrate(tail, shift, shift + most,
                                                                       15, 1e-9);
}

double range_probability(double q, int count, double degrees) {
  if (count < 2) throw Error(ErrorKind::failed, fmt::format("{} values have no range", count));
  degrees = checked_degrees(degrees);
  if (q <= 0) return 0;
  // The range is at most w: the lowest value is z, the others lie in (z, z + w).
  const auto range = [&](double w) {
    const auto at = [&](double z) {
      const double beside = below(z + w) - below(z);
      return std::exp(-z * z / 2) * std::pow(beside, count - 1);
    };
    return count / std::sqrt(2 * std::numbers::pi) *
           Quadrature::integrate(at, -kFarNormal, kFarNormal);
  };
  // Density of the standard deviation s: chi-square of degrees s^2, times 2 degrees s. The bulk of
  // s lies within some widths of 1.
  const double scale =
      std::log(2.0) + degrees / 2 * std::log(degrees / 2) - std::lgamma(degrees / 2);
  const auto weighted = [&](double s) {
    if (s <= 0) return 0.0;
    return std::exp(scale + (degrees - 1) * std::log(s) - degrees * s * s / 2) * range(q * s);
  };
  const double width = kFarNormal / std::sqrt(2 * degrees);
  return std::clamp(Quadrature::integrate(weighted, std::max(0.0, 1 - width), 1 + width), 0.0, 1.0);
}

double range_quantile(double p, int count, double degrees) {
  double low = 0, high = 1;
  while (range_probability(high, count, degrees) < checked_probability(p)) high *= 2;
  for (int i = 0; i < 26; ++i) {
    const double middle = (low + high) / 2;
    (range_probability(middle, count, degrees) < p ? low : high) = middle;
  }
  return high;
}

}  // namespace tpudist
