#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "core/means.hpp"

namespace tpudist {

// Exact two-sided p of Welch's t by exchanging the labels of runs (Janssen, Statistics &
// Probability Letters 1997), which calibrations show beside Welch's own p. For few runs: counts all
// labellings.
class LabelTest {
 public:
  LabelTest(const std::vector<double>& a, const std::vector<double>& b) : pool_(a) {
    pool_.insert(pool_.end(), b.begin(), b.end());
    const double centre = mean(pool_);
    for (double& value : pool_) value -= centre;
    for (const double value : pool_) all_squares_ += value * value;
    first_ = static_cast<double>(a.size());
    second_ = static_cast<double>(b.size());
    double sum = 0, squares = 0;
    for (std::size_t i = 0; i < a.size(); ++i) {
      sum += pool_[i];
      squares += pool_[i] * pool_[i];
    }
    own_ = parts(sum, squares);
    if (own_.first <= kRounding * all_squares_) own_.first = 0;
    choose(0, a.size(), 0, 0);
    p = beyond_ / labellings_;
  }

  double p = 1;

 private:
  static constexpr double kRounding = 1e-12;  // the order of summation changes a sum

  // Squared difference of means, and its variance, of a labelling by the sum and the sum of squares
  // of the values labelled A.
  std::pair<double, double> parts(double sum, double squares) const {
    const double mean = sum / first_, other = -sum / second_;
    const double within = std::max(0.0, squares - first_ * mean * mean),
                 beside = std::max(0.0, all_squares_ - squares - second_ * other * other);
    const double variance = within / (first_ - 1) / first_ + beside / (second_ - 1) / second_;
    return {(mean - other) * (mean - other), variance <= kRounding * all_squares_ ? 0 : variance};
  }

  void choose(std::size_t next, std::size_t left, double sum, double squares) {
    if (left > 0) {
      for (std::size_t i = next; i + left <= pool_.size(); ++i)
        choose(i + 1, left - 1, sum + pool_[i], squares + pool_[i] * pool_[i]);
      return;
    }
    // Cross-multiplied, because either variance may be 0.
    const auto [difference, variance] = parts(sum, squares);
    const double own = own_.first * variance, other = difference * own_.second;
    ++labellings_;
    beyond_ += variance == 0 && own_.second == 0 ? difference >= own_.first * (1 - kRounding)
                                                 : other >= own - kRounding * std::max(own, other);
  }

  std::vector<double> pool_;
  double first_ = 0, second_ = 0, all_squares_ = 0, labellings_ = 0, beyond_ = 0;
  std::pair<double, double> own_;
};

// Nothing where the test does not hold: a side has one run, or a side has fewer than 10 runs and
// standard deviations or run counts differ by more than 3 to 1.
inline std::optional<LabelTest> label_test(const std::vector<double>& a,
                                           const std::vector<double>& b, std::uint64_t /*key*/) {
  const std::size_t fewer = std::min(a.size(), b.size()), more = std::max(a.size(), b.size());
  if (fewer < 2) return std::nullopt;
  const double of_a = std::sqrt(sample_variance(a)), of_b = std::sqrt(sample_variance(b));
  if (fewer < 10 && (more > 3 * fewer || std::max(of_a, of_b) > 3 * std::min(of_a, of_b)))
    return std::nullopt;
  return LabelTest(a, b);
}

}  // namespace tpudist
