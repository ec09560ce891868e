#include "statistics/distributions.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <boost/math/distributions/chi_squared.hpp>
#include <boost/math/distributions/non_central_t.hpp>
#include <boost/math/distributions/students_t.hpp>
#include <cmath>
#include <limits>

#include "core/error.hpp"

namespace tpudist {
namespace {

using boost::math::cdf;
using boost::math::complement;
using StudentT = boost::math::students_t;
// In double: long double takes ten times as long, and more digits than 12 are of no use here.
using Plain = boost::math::policies::policy<boost::math::policies::promote_double<false>>;
using NoncentralT = boost::math::non_central_t_distribution<double, Plain>;

// Beyond so many degrees of freedom t is normal to all digits; Boost's series are then slow.
constexpr double kMostDegrees = 1e9;
// Beyond such a shift a test finds the difference always.
constexpr double kLargestShift = 38;

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

double t_test_power(double shift, double degrees, double level) {
  degrees = checked_degrees(degrees);
  const double bound = t_quantile(1 - level / 2, degrees);
  shift = std::abs(shift);
  if (shift == 0) return level;
  if (shift > kLargestShift && shift > 2 * bound) return 1;
  const NoncentralT shifted(degrees, shift);
  return std::min(1.0, cdf(complement(shifted, bound)) + cdf(shifted, -bound));
}

double expected_loss(double shift, double degrees) {
  if (checked_degrees(degrees) <= 1) return std::numeric_limits<double>::infinity();
  const StudentT t(checked_degrees(degrees));
  // The integral of (u - shift) f(u) above `shift`, with u f(u) integrated in closed form.
  const double tail =
      pdf(t, shift) * (t.degrees_of_freedom() + shift * shift) / (t.degrees_of_freedom() - 1);
  return tail - shift * cdf(complement(t, shift));
}

}  // namespace tpudist
