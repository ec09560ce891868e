#include "statistics/intervals/permutation.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <tuple>

#include "core/error.hpp"
#include "core/means.hpp"
#include "core/random.hpp"
#include "statistics/intervals/interval.hpp"

namespace tpudist {
namespace {

using Values = std::vector<double>;

constexpr double kMostLabellings = 1 << 22;
constexpr std::size_t kMostHalf = 21;  // values whose signs are enumerated
constexpr int kDraws = 99'999;
// The order of summation changes a sum by rounding; such sums count as equal.
constexpr double kRounding = 1e-12;
// A side with fewer runs allows no label test if sides are uneven.
constexpr std::size_t kFewRuns = 10;
constexpr double kLargestRatio = 3;

// Sorted, so that the drawn labellings do not depend on the order of runs.
Values checked(Values values) {
  if (values.empty()) throw Error(ErrorKind::failed, "one side has no value");
  for (const double value : values) {
    if (!std::isfinite(value)) throw DataError(fmt::format("{} cannot be compared", value));
  }
  std::ranges::sort(values);
  return values;
}

// Welch's t of a labelling, from the sum and sum of squares of the values labelled `first`. All
// values together have mean 0.
struct WelchT {
  double first = 0, second = 0;  // numbers of values
  double squares = 0;            // of all values
  double rounding = 0;           // variances below it are 0

  // Squared difference of means, and its variance.
  std::pair<double, double> parts(double sum, double sum_of_squares) const {
    const double mean = sum / first, other = -sum / second;
    const double within = std::max(0.0, sum_of_squares - first * mean * mean);
    const double beside = std::max(0.0, squares - sum_of_squares - second * other * other);
    const double variance = within / (first - 1) / first + beside / (second - 1) / second;
    return {(mean - other) * (mean - other), variance <= rounding ? 0 : variance};
  }
};

class LabelCount {
 public:
  // `a` has at most as many values as `b`.
  LabelCount(const Values& a, const Values& b) : pool_(a), chosen_(a.size()) {
    pool_.insert(pool_.end(), b.begin(), b.end());
    std::ranges::sort(pool_);
    const double centre = mean(pool_);
    for (double& value : pool_) value -= centre;
    t_.first = static_cast<double>(a.size());
    t_.second = static_cast<double>(b.size());
    double sum = 0, squares = 0;
    for (const double value : a) {
      sum += value - centre;
      squares += (value - centre) * (value - centre);
    }
    for (const double value : pool_) t_.squares += value * value;
    t_.rounding = kRounding * t_.squares;
    std::tie(difference_, variance_) = t_.parts(sum, squares);
    // Means of equal sides differ only by rounding.
    if (difference_ <= t_.rounding) difference_ = 0;
  }

  double labellings() const {
    double count = 1;
    for (std::size_t i = 1; i <= chosen_; ++i)
      count = std::round(count * static_cast<double>(pool_.size() - chosen_ + i) /
                         static_cast<double>(i));
    return count;
  }
  double exact_p() {
    choose(0, chosen_, 0, 0);
    return beyond_ / labellings();
  }
  double drawn_p(std::uint64_t key) {
    CounterRng random(key);
    beyond_ = 1;
    for (int i = 0; i < kDraws; ++i) {
      random.shuffle(std::span(pool_));
      double sum = 0, squares = 0;
      for (std::size_t k = 0; k < chosen_; ++k) {
        sum += pool_[k];
        squares += pool_[k] * pool_[k];
      }
      count(sum, squares);
    }
    return beyond_ / (kDraws + 1);
  }

 private:
  // |t| of a labelling compared with the observed one, cross-multiplied because either variance
  // may be 0.
  void count(double sum, double squares) {
    const auto [difference, variance] = t_.parts(sum, squares);
    const double own = difference_ * variance, other = difference * variance_;
    // If neither has a variance, the larger difference is the larger t.
    const bool beyond = variance == 0 && variance_ == 0
                            ? difference >= difference_ * (1 - kRounding)
                            : other >= own - kRounding * std::max(own, other);
    beyond_ += beyond;
  }

  void choose(std::size_t next, std::size_t left, double sum, double squares) {
    if (left == 0) return count(sum, squares);
    for (std::size_t i = next; i + left <= pool_.size(); ++i)
      choose(i + 1, left - 1, sum + pool_[i], squares + pool_[i] * pool_[i]);
  }

  Values pool_;
  std::size_t chosen_;
  WelchT t_;
  double difference_ = 0, variance_ = 0;
  double beyond_ = 0;
};

double deviation(const Values& values) {
  const double found = std::sqrt(sample_variance(values));
  return found < kScoreRounding ? 0 : found;
}

// Whether a side has few runs and spreads or run counts differ much.
bool is_uneven(const Values& a, const Values& b) {
  const std::size_t fewer = std::min(a.size(), b.size()), more = std::max(a.size(), b.size());
  if (fewer >= kFewRuns) return false;
  if (static_cast<double>(more) > kLargestRatio * static_cast<double>(fewer)) return true;
  const double of_a = deviation(a), of_b = deviation(b);
  return std::max(of_a, of_b) > kLargestRatio * std::min(of_a, of_b);
}

Values all_sums(std::span<const double> values) {
  Values sums{0};
  for (const double value : values) {
    const std::size_t count = sums.size();
    sums.reserve(2 * count);
    for (std::size_t i = 0; i < count; ++i) {
      sums.push_back(sums[i] - value);
      sums[i] += value;
    }
  }
  std::ranges::sort(sums);
  return sums;
}

// The number of sums x + y, x in `first` and y in `second` (both sorted), with |x + y| >= `bound`.
double count_beyond(const Values& first, const Values& second, double bound) {
  double count = 0;
  auto above = second.end(), below = second.end();  // as x rises, both move to the front
  for (const double x : first) {
    while (above != second.begin() && x + *std::prev(above) >= bound) --above;
    while (below != second.begin() && x + *std::prev(below) > -bound) --below;
    count += static_cast<double>(std::distance(above, second.end())) +
             static_cast<double>(std::distance(second.begin(), below));
  }
  return count;
}

double drawn_signs(const Values& values, double bound, std::uint64_t key) {
  CounterRng random(key);
  int beyond = 1;
  for (int i = 0; i < kDraws; ++i) {
    double sum = 0;
    for (const double value : values) sum += random.uniform() < 0.5 ? value : -value;
    beyond += std::abs(sum) >= bound;
  }
  return static_cast<double>(beyond) / (kDraws + 1);
}

}  // namespace

std::optional<PermutationTest> label_test(std::span<const double> a, std::span<const double> b,
                                          std::uint64_t key) {
  const Values of_a = checked({a.begin(), a.end()}), of_b = checked({b.begin(), b.end()});
  if (std::min(a.size(), b.size()) < 2 || is_uneven(of_a, of_b)) return std::nullopt;
  LabelCount labels = of_a.size() <= of_b.size() ? LabelCount(of_a, of_b) : LabelCount(of_b, of_a);
  PermutationTest test;
  test.labellings = labels.labellings();
  test.smallest_p = std::min(1.0, (a.size() == b.size() ? 2 : 1) / test.labellings);
  test.exact = test.labellings <= kMostLabellings;
  test.p = test.exact ? labels.exact_p() : labels.drawn_p(key);
  return test;
}

PermutationTest sign_test(std::span<const double> values, std::uint64_t key) {
  // Uses sorted sizes, so that drawn signs depend neither on the order of values nor on the sides.
  double sum = 0;
  Values sizes;
  for (const double value : checked({values.begin(), values.end()})) {
    sum += value;
    sizes.push_back(std::abs(value));
  }
  std::ranges::sort(sizes);
  PermutationTest test;
  test.labellings = std::pow(2.0, static_cast<double>(values.size()));
  test.smallest_p = std::min(1.0, 2 / test.labellings);
  double size = 0;
  for (const double value : sizes) size += value;
  // A bound of 0 or below would count sums twice.
  const double bound = std::abs(sum) - kRounding * size;
  if (bound <= 0) return test;
  test.exact = sizes.size() <= 2 * kMostHalf;
  if (!test.exact) {
    test.p = drawn_signs(sizes, bound, key);
    return test;
  }
  const auto half = std::span<const double>(sizes).first(sizes.size() / 2);
  const auto rest = std::span<const double>(sizes).subspan(half.size());
  test.p = count_beyond(all_sums(half), all_sums(rest), bound) / test.labellings;
  return test;
}

}  // namespace tpudist
