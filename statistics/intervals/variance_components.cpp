#include "statistics/intervals/variance_components.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>
#include <vector>

#include "core/error.hpp"
#include "statistics/intervals/distributions.hpp"
#include "statistics/intervals/simplex_search.hpp"

namespace tpudist {
namespace {

// Standard deviations of graph, run and residual.
using Deviations = std::array<double, 3>;
enum Component : std::size_t { kGraph, kRun, kResidual };

// The smallest standard deviation of the residual, relative to that of all scores, because at 0 the
// likelihood is unbounded.
constexpr double kSmallestResidual = 1e-6;
// A standard deviation below this part of the mean is 0.
constexpr double kSpreadRounding = 1e-13;

double square(double value) {
  return value * value;
}

// Works on scores in units of their own standard deviation.
class Likelihood {
 public:
  explicit Likelihood(const RunScoreTable& scores) : folds_(tables_of(scores)) {
    double squares = 0, count = 0, mean = mean_score(scores);
    for (const TwoWayTable& fold : folds_) {
      count += fold.graphs * fold.runs;
      squares += fold.graph_squares + fold.run_squares + fold.interaction_squares +
                 fold.graphs * fold.runs * square(fold.mean - mean);
    }
    scale_ = std::sqrt(squares / (count - 1));
    if (scale_ <= kSpreadRounding * std::abs(mean)) scale_ = 0;
    if (scale_ == 0) return;
    for (TwoWayTable& fold : folds_) {
      fold.mean = (fold.mean - mean) / scale_;
      for (double* squares_of : {&fold.graph_squares, &fold.run_squares, &fold.interaction_squares})
        *squares_of /= scale_ * scale_;
    }
    centre_ = mean;
  }

  double scale() const { return scale_; }
  const std::vector<TwoWayTable>& folds() const { return folds_; }

  // Minus twice the restricted log likelihood, up to a constant. Within a fold of n graphs and R
  // runs the covariance has four eigenvalues: of the residuals, the graphs' means, the runs' means
  // and the mean.
  double operator()(const Deviations& sd) const {
    const double residual = square(std::max(std::abs(sd[kResidual]), kSmallestResidual));
    const double graph = square(sd[kGraph]), run = square(sd[kRun]);
    double sum = 0;
    for (const TwoWayTable& fold : folds_) {
      const double of_graphs = residual + fold.runs * graph, of_runs = residual + fold.graphs * run;
      sum += (fold.graphs - 1) * (fold.runs - 1) * std::log(residual) +
             fold.interaction_squares / residual;
      sum += (fold.graphs - 1) * std::log(of_graphs) + fold.graph_squares / of_graphs;
      sum += (fold.runs - 1) * std::log(of_runs) + fold.run_squares / of_runs;
    }
    return sum + of_means(graph, run, residual);
  }

  double mean(const Deviations& sd) const {
    double information = 0, sum = 0;
    for (const TwoWayTable& fold : folds_) {
      const double own =
          information_of(fold, square(sd[kGraph]), square(sd[kRun]), square(sd[kResidual]));
      information += own;
      sum += own * fold.mean;
    }
    return centre_ + scale_ * sum / information;
  }

 private:
  // 1 / the variance of a fold's mean.
  static double information_of(const TwoWayTable& fold, double graph, double run, double residual) {
    return fold.graphs * fold.runs / (residual + fold.runs * graph + fold.graphs * run);
  }

  // Contribution of the folds' means around their weighted mean, and the restriction term.
  double of_means(double graph, double run, double residual) const {
    double sum = 0, information = 0, weighted = 0;
    for (const TwoWayTable& fold : folds_) {
      const double own = information_of(fold, graph, run, residual);
      information += own;
      weighted += own * fold.mean;
      sum += std::log(fold.graphs * fold.runs / own) + own * square(fold.mean);
    }
    return sum - weighted * weighted / information + std::log(information);
  }

  std::vector<TwoWayTable> folds_;
  double scale_ = 0, centre_ = 0;
};

// Estimates from mean squares, pooled over folds.
Deviations moments_of(const std::vector<TwoWayTable>& folds) {
  double interactions = 0, interaction_degrees = 0, graphs = 0, graph_degrees = 0, runs = 0,
         run_degrees = 0, in_fold = 0;
  for (const TwoWayTable& fold : folds) {
    interactions += fold.interaction_squares;
    interaction_degrees += (fold.graphs - 1) * (fold.runs - 1);
    graphs += fold.graph_squares;
    graph_degrees += fold.graphs - 1;
    runs += fold.run_squares;
    run_degrees += fold.runs - 1;
    in_fold += fold.graphs / static_cast<double>(folds.size());
  }
  const double residual = interactions / interaction_degrees;
  return {std::sqrt(std::max(0.0, graphs / graph_degrees - residual) / folds.front().runs),
          std::sqrt(std::max(0.0, runs / run_degrees - residual) / in_fold), std::sqrt(residual)};
}

class Fit {
 public:
  explicit Fit(const Likelihood& likelihood) : likelihood_(likelihood) {
    const Deviations moments = moments_of(likelihood.folds());
    best_ = least(moments, std::nullopt);
    // A second start in the middle, because the first may be at a bound.
    const Deviations second = least({0.5, 0.5, 0.5}, std::nullopt);
    if (likelihood(second) < likelihood(best_)) best_ = second;
  }

  const Deviations& best() const { return best_; }

  VarianceComponents::Deviation interval(Component component, double level) const {
    const double fall = chi_square_quantile(level, 1), top = likelihood_(best_);
    const auto inside = [&](double deviation) {
      Deviations start = best_;
      start[component] = deviation;
      return likelihood_(least(start, component)) - top <= fall;
    };
    const double own = best_[component];
    VarianceComponents::Deviation result{own, 0, 0};
    if (!inside(0)) result.low = bound(0, own, inside);
    double beyond = std::max(2 * own, 0.1);
    while (inside(beyond) && beyond < 1e6) beyond *= 2;
    result.high = bound(beyond, own, inside);
    return result;
  }

 private:
  // The best deviations, starting at `start`, with one of them fixed if given; none is negative.
  Deviations least(const Deviations& start, std::optional<Component> fixed) const {
    std::vector<double> free, step;
    for (std::size_t i = 0; i < start.size(); ++i) {
      if (i == fixed) continue;
      free.push_back(start[i]);
      step.push_back(std::max(0.3 * start[i], 0.05));
    }
    const auto all = [&](std::span<const double> values) {
      Deviations sd = start;
      std::size_t next = 0;
      for (std::size_t i = 0; i < sd.size(); ++i) {
        if (i != fixed) sd[i] = std::abs(values[next++]);
      }
      return sd;
    };
    const std::vector<double> found = simplex_search(
        [&](std::span<const double> values) { return likelihood_(all(values)); }, free, step);
    // A variance whose estimate would be negative comes out near 0; set it to 0.
    Deviations sd = all(found);
    for (std::size_t i = 0; i < kResidual; ++i) {
      Deviations without = sd;
      without[i] = 0;
      if (i != fixed && likelihood_(without) <= likelihood_(sd)) sd = without;
    }
    return sd;
  }

  // The deviation between `outside` and `within` at which `inside` begins to hold.
  template <typename Inside>
  static double bound(double outside, double within, const Inside& inside) {
    for (int i = 0; i < 40; ++i) {
      const double middle = (outside + within) / 2;
      (inside(middle) ? within : outside) = middle;
    }
    return within;
  }

  const Likelihood& likelihood_;
  Deviations best_{};
};

VarianceComponents::Deviation scaled(VarianceComponents::Deviation interval, double scale) {
  return {interval.value * scale, interval.low * scale, interval.high * scale};
}

}  // namespace

VarianceComponents variance_components(const RunScoreTable& scores, double level) {
  const Likelihood likelihood(scores);
  const bool crossed = std::ranges::any_of(likelihood.folds(),
                                           [](const TwoWayTable& fold) { return fold.graphs > 1; });
  if (scores.run_count() < 2 || !crossed)
    throw Error(ErrorKind::failed,
                "what scores differ by can be told apart from two runs and two graphs on only");
  VarianceComponents result;
  if (likelihood.scale() == 0) {
    result.mean = mean_score(scores);
    return result;
  }
  const Fit fit(likelihood);
  result.mean = likelihood.mean(fit.best());
  result.graph = scaled(fit.interval(kGraph, level), likelihood.scale());
  result.run = scaled(fit.interval(kRun, level), likelihood.scale());
  result.residual = scaled(fit.interval(kResidual, level), likelihood.scale());
  return result;
}

}  // namespace tpudist
