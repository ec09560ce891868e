#pragma once

#include <cstdint>
#include <vector>

#include "core/random.hpp"
#include "statistics/measured_configs.hpp"
#include "statistics/noise_model.hpp"

namespace tpudist {

// The distribution of the true run times of a graph's configurations, given all their measurements:
// the mixture over a grid in log time that makes the measurements most likely (Kiefer and
// Wolfowitz, 1956; Laird, "Nonparametric maximum likelihood estimation of a mixing distribution",
// JASA 1978), by kSteps steps of EM from equal weights. The grid has kPerDeviation points per
// standard deviation of the noise there. A configuration uses only the points within 5 deviations
// of the median of its measurements. Memory is proportional to the configurations, time to that and
// the steps. Immutable, thread-safe.
class TrueTimes {
 public:
  static constexpr int kSteps = 60;
  static constexpr int kPerDeviation = 3;

  TrueTimes(const MeasuredConfigs& measured, const NoiseModel& noise);

  // One possible truth: the log true time of each configuration [C]. It is drawn from the
  // configuration's posterior distribution over the grid, and evenly within a cell, so that no two
  // are equal.
  std::vector<double> draw(CounterRng& random) const;

  // [points] the grid and its weights, which sum to 1.
  const std::vector<double>& grid() const { return grid_; }
  const std::vector<double>& weights() const { return weights_; }

 private:
  // The grid points that one configuration uses.
  struct Band {
    std::int64_t first = 0, count = 0;  // in the grid
    std::int64_t begin = 0;             // in likelihood_
  };

  void make_grid(const NoiseModel& noise, const std::vector<double>& centres);
  void weigh(const MeasuredConfigs& measured, const NoiseModel& noise,
             const std::vector<double>& centres);
  void step();

  std::vector<double> grid_, width_;  // points, and the widths of their cells
  std::vector<double> weights_;
  std::vector<Band> bands_;        // [C]
  std::vector<float> likelihood_;  // of all bands; each relative to its largest value
};

}  // namespace tpudist
