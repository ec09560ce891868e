#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/aligned.hpp"
#include "core/config/config.hpp"
#include "core/thread_pool.hpp"

namespace tpudist {

enum class AverageKind { none, ema, swa };

// `train.average:` of an experiment file: the average of a member's weights over the steps, kept
// beside the weights.
struct AverageConfig {
  AverageKind kind = AverageKind::none;
  double decay = 0.99;     // ema: factor of the old points when a new point is added
  double from = 0;         // share of all steps before the first point
  std::int64_t every = 1;  // steps between points

  static AverageConfig read(ConfigNode node);
  // Whether the weights after step `done` (from 1) of `steps` are a point of the average.
  bool takes(std::int64_t done, std::int64_t steps) const;
  // The share of the n-th point (from 1) in the average of n points.
  double share(std::int64_t n) const;
};

// The average of each member's weights, a_n = a_(n-1) + share(n) * (w_n - a_(n-1)), where w_1, w_2,
// ... are its weights after the steps selected by `AverageConfig::takes`:
//
//   swa   share(n) = 1 / n: the mean of all points (Polyak & Juditsky, "Acceleration of stochastic
//         approximation by averaging", 1992; Izmailov et al., "Averaging weights leads to wider
//         optima and better generalization", 2018)
//   ema   share(n) = (1 - decay) / (1 - decay^n): the mean of all points with weights decay^(n-i),
//         which is the exponential average with Adam's bias correction (Kingma & Ba 2015,
//         section 3). The first point counts in full, so neither zero nor the initial weights
//         contribute, even in a short run.
//
// In float32, elementwise: the bits do not depend on threads, and padding stays zero. Values that
// training does not change, such as statistics, keep their bits. Without an average it is empty and
// does nothing. Not thread-safe; one call at a time.
class WeightAverage {
 public:
  // `length`: floats of a member, P.
  WeightAverage(const AverageConfig& config, std::int64_t length, int members);

  bool is_kept() const { return config_.kind != AverageKind::none; }
  // Adds the weights [M, P] of the active members after step `done` of `steps`, if that is a point
  // of the average.
  void add(std::span<const float> flat, const std::vector<bool>& active, std::int64_t done,
           std::int64_t steps, ThreadPool& pool);

  // For averages on a device (DeviceWeights). Counts a point of each active member after step
  // `done` of `steps`, if that is a point, and returns the points' shares [M], 0 for other members;
  // else empty.
  std::vector<float> begin_point(const std::vector<bool>& active, std::int64_t done,
                                 std::int64_t steps);

  // State for checkpoints; empty without an average.
  std::span<float> values() { return values_; }         // [M, P]
  std::span<std::int64_t> points() { return points_; }  // [M] number of points added
  std::span<const float> values() const { return values_; }
  std::span<const std::int64_t> points() const { return points_; }

 private:
  AverageConfig config_;
  std::int64_t length_;
  AlignedFloats values_;
  std::vector<std::int64_t> points_;
};

// The weights [M, P] for scoring: each member's average if it has one, else its own weights.
// `values` and `points` may be empty.
AlignedFloats averaged_weights(std::span<const float> flat, std::span<const float> values,
                               std::span<const std::int64_t> points);

}  // namespace tpudist
