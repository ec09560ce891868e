#include "statistics/intervals/score_intervals.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>
#include <string_view>
#include <vector>

#include "core/error.hpp"
#include "core/random.hpp"
#include "statistics/intervals/distributions.hpp"
#include "statistics/intervals/run_variance.hpp"

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

// Key of the bootstrap's samples; an arbitrary constant.
constexpr std::uint64_t kBootstrapKey = 0x7461755f62;

// Sets all of a FamilyInterval except V_fam, and the interval from both.
FamilyInterval with_runs(std::span<const RunScoreTable> collections, const VarianceEstimate& family,
                         double level) {
  FamilyInterval result;
  result.family = family;
  result.collections = static_cast<int>(collections.size());
  const auto count = static_cast<double>(collections.size());
  double mean = 0;
  std::set<std::string> families;
  std::vector<VarianceEstimate> terms{family};
  for (const RunScoreTable& own : collections) {
    result.runs =
        &own == collections.data() ? own.run_count() : std::min(result.runs, own.run_count());
    result.graphs += own.graph_count();
    families.insert(own.families.begin(), own.families.end());
    mean += mean_score(own) / count;
    if (own.run_count() < 2) continue;
    const RunVariance runs = run_variance(own);
    for (VarianceEstimate term : {runs.run_term(), runs.interaction_term(), runs.training_term()}) {
      term.variance /= count * count;
      result.run_variance += term.variance;
      terms.push_back(term);
    }
  }
  result.families = static_cast<int>(families.size());
  result.interval = t_interval(mean, satterthwaite(terms), level);
  return result;
}

std::string line(std::string_view question, std::string_view answer) {
  return fmt::format("{:<31}  {}", question, answer);
}

std::string count(int number, std::string_view one, std::string_view many) {
  return fmt::format("{} {}", number, number == 1 ? one : many);
}

constexpr std::string_view kTheseGraphs = "these graphs, other runs",
                           kOtherFamilies = "other families, other runs",
                           kThisModel = "other families, this model only",
                           kMembers = "other members of this training";

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

std::optional<Interval> run_interval(const RunScoreTable& scores, double level) {
  scores.check();
  if (scores.run_count() < 2) return std::nullopt;
  return mean_interval(run_means(scores), level);
}

std::optional<FamilyInterval> family_interval(std::span<const RunScoreTable> collections,
                                              double level) {
  std::vector<GraphValues> means;
  for (const RunScoreTable& own : collections) {
    own.check();
    if (own.family_count() < 2) return std::nullopt;
    means.push_back({own.families, graph_means(own)});
  }
  return with_runs(collections, family_variance(means), level);
}

FamilyInterval bootstrap_family_interval(const RunScoreTable& scores, double level) {
  scores.check();
  FamilyInterval result = with_runs(
      {&scores, 1},
      bootstrap_family_variance({scores.families, graph_means(scores)}, level, kBootstrapKey),
      level);
  result.bootstrap = true;
  return result;
}

std::string interval_text(const Interval& interval) {
  if (!interval.is_known())
    return fmt::format("{:.4f} (no interval: {})", interval.value, alike_line("all scores"));
  return fmt::format("{:.4f} ({:.4f} to {:.4f}, t({:.3g}))", interval.value, interval.low,
                     interval.high, interval.degrees);
}

std::string family_line(const FamilyInterval& found) {
  return line(
      found.runs == 1 ? kThisModel : kOtherFamilies,
      fmt::format("{}; {} of {}{}{}{}", interval_text(found.interval),
                  count(found.graphs, "graph", "graphs"),
                  count(found.families, "family", "families"),
                  found.collections > 1 ? fmt::format(" in {} collections", found.collections) : "",
                  found.runs > 1 ? fmt::format(", {} runs", found.runs) : "",
                  found.bootstrap ? ", bootstrap" : ""));
}

std::string run_line(const Interval& interval, const std::string& source) {
  return line(kTheseGraphs, interval_text(interval) + "; " + source);
}

std::string member_line(const Interval& interval, const std::string& source) {
  return line(kMembers, interval_text(interval) + "; " + source);
}

std::string one_training_line() {
  return "one training says nothing of others; train again with another seed.init and "
         "seed.order";
}

std::string rare_failure_line(int families) {
  return fmt::format("an interval from {} families cannot see failures rarer than about 1 in {}",
                     families, families);
}

std::string rare_collapse_line(int trainings) {
  return fmt::format("an interval from {} trainings cannot see collapses rarer than about 1 in {}",
                     trainings, trainings);
}

std::string alike_line(const std::string& what) {
  return what + " are alike, so their spread is not known";
}

std::string no_run_line(const std::string& reason) {
  return line(kTheseGraphs, "not enough: " + reason);
}

std::string no_family_line() {
  return line("other families", "not enough: all graphs are of one family");
}

}  // namespace tpudist
