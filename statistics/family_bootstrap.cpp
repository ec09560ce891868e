#include "statistics/family_bootstrap.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>

#include "core/error.hpp"
#include "core/random.hpp"
#include "statistics/distributions.hpp"

namespace tpudist {
namespace {

constexpr std::size_t kMostEnumerated = 8;
constexpr int kBootstrapDraws = 5000;

// |t| of one sample, and how probable the sample is.
struct SampledT {
  double t = 0, probability = 0;
};

// The values around their mean, and the samples of n of them with replacement.
class Samples {
 public:
  explicit Samples(std::span<const double> values) : deviations_(values.begin(), values.end()) {
    double sum = 0;
    for (const double value : values) sum += value;
    for (double& value : deviations_) value -= sum / static_cast<double>(values.size());
    times_.assign(values.size(), 0);
  }

  std::vector<SampledT> enumerate() {
    take(0, static_cast<int>(times_.size()), 1.0);
    return std::move(result_);
  }

  std::vector<SampledT> draw(std::uint64_t key) {
    CounterRng random(key);
    for (int i = 0; i < kBootstrapDraws; ++i) {
      std::ranges::fill(times_, 0);
      for (std::size_t j = 0; j < times_.size(); ++j) ++times_[random.below(times_.size())];
      result_.push_back({absolute_t(), 1.0 / kBootstrapDraws});
    }
    return std::move(result_);
  }

 private:
  // Enumerates how often value `index` and the following ones fill the `left` remaining places. A
  // sample's probability is n! / n^n / product of times!: a factor (left choose times) / n^times
  // for each value.
  void take(std::size_t index, int left, double probability) {
    const auto n = static_cast<double>(times_.size());
    if (index + 1 == times_.size()) {
      times_[index] = left;
      result_.push_back({absolute_t(), probability * std::pow(n, -left)});
      return;
    }
    double ways = 1;
    for (int times = 0; times <= left; ++times) {
      times_[index] = times;
      take(index + 1, left - times, probability * ways * std::pow(n, -times));
      ways = ways * (left - times) / (times + 1);
    }
  }

  // For a sample of equal values: infinite, unless they equal the mean.
  double absolute_t() const {
    const auto n = static_cast<double>(times_.size());
    double sum = 0, squares = 0;
    for (std::size_t i = 0; i < times_.size(); ++i) {
      sum += times_[i] * deviations_[i];
      squares += times_[i] * deviations_[i] * deviations_[i];
    }
    const bool constant = std::ranges::count_if(times_, [](int times) { return times > 0; }) == 1;
    if (sum == 0) return 0;
    const double variance = (squares - sum * sum / n) / (n - 1) / n;
    if (constant || !(variance > 0)) return std::numeric_limits<double>::infinity();
    return std::abs(sum / n) / std::sqrt(variance);
  }

  std::vector<double> deviations_;
  std::vector<int> times_;  // how often each value stands in the sample
  std::vector<SampledT> result_;
};

// The smallest |t| that is exceeded with probability at most 1 - `level`.
double quantile_of(std::vector<SampledT> samples, double level) {
  std::ranges::sort(samples, {}, &SampledT::t);
  double below = 0;
  for (const SampledT& sample : samples) {
    below += sample.probability;
    if (below >= level) return sample.t;
  }
  return samples.back().t;
}

}  // namespace

VarianceEstimate bootstrap_family_variance(const GraphValues& graphs, double level,
                                           std::uint64_t key) {
  const std::size_t n = graphs.values.size();
  const std::set<std::string> families(graphs.families.begin(), graphs.families.end());
  if (n < kLeastBootstrapFamilies || families.size() != n)
    throw Error(ErrorKind::failed,
                fmt::format("the bootstrap needs at least {} families of one graph each, not {} "
                            "graphs of {} families",
                            kLeastBootstrapFamilies, n, families.size()));
  const VarianceEstimate plain = family_variance({&graphs, 1});
  if (plain.variance == 0) return plain;
  Samples samples(graphs.values);
  const double bound =
      quantile_of(n <= kMostEnumerated ? samples.enumerate() : samples.draw(key), level);
  const double widening = bound / t_quantile((1 + level) / 2, plain.degrees);
  return {plain.variance * widening * widening, plain.degrees};
}

}  // namespace tpudist
