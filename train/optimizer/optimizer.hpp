#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "core/aligned.hpp"
#include "core/config/config.hpp"
#include "core/parameters/parameter_table.hpp"
#include "core/thread_pool.hpp"
#include "models/kernels/flat_launches.hpp"

namespace tpudist {

// `optimizer:` of an experiment file.
struct OptimizerConfig {
  std::string name = "adamw";  // adamw (decoupled decay) or adam (decay as an L2 term)
  double rate = 1e-3;          // lr
  double beta1 = 0.9, beta2 = 0.999;
  double eps = 1e-8;
  double clip_norm = 0;         // largest norm of a member's gradient; 0 = no clipping
  double clip_tensor_norm = 0;  // the same for each tensor by itself; excludes clip_norm
  bool decay_clipped = false;   // adam: the decay is a part of the gradient that is clipped

  // Weight decay of each group of parameters, `decay.weights` and so on; default `decay.all`.
  // Statistics have 0.
  double decay_of(ParameterGroup group) const { return decay[static_cast<std::size_t>(group)]; }
  void set_decay(ParameterGroup group, double value) {
    decay[static_cast<std::size_t>(group)] = value;
  }
  static OptimizerConfig read(ConfigNode node);

  std::array<double, kParameterGroups> decay{};  // by ParameterGroup
};

// Adam and AdamW (Kingma & Ba 2015; Loshchilov & Hutter 2019), equal to torch.optim up to rounding,
// on the flat buffer [M, P] of all members. Every member has its own step count and may skip a
// step. Statistics keep their bits and are in no norm. The update is elementwise, so its bits do
// not depend on threads; padding stays zero. Not thread-safe; one call at a time.
class FlatOptimizer {
 public:
  FlatOptimizer(const OptimizerConfig& config, const ParameterTable& table, int members);

  // Norm of each member's gradient, [M], in double over fixed blocks: the same bits for any number
  // of threads. Members lie `stride` >= P floats apart. NaN or infinite if the gradient is.
  // Statistics are excluded.
  std::vector<double> gradient_norms(std::span<const float> gradients, std::int64_t stride,
                                     ThreadPool& pool) const;

  // One step of each active member with rate = config.rate * rate_factor. The gradient, or with
  // clip_tensor_norm each tensor's gradient, is first scaled by min(1, clip_norm / (norm + 1e-6)),
  // as in torch's clip_grad_norm_. `flat` is [M, P]; `norms` [M] is read only with clip_norm. A
  // member whose norm is not finite must be inactive. Throws Error for a wrong size.
  void step(std::span<float> flat, std::span<const float> gradients, std::int64_t stride,
            std::span<const double> norms, const std::vector<bool>& active, double rate_factor,
            ThreadPool& pool);

  // For steps on a device (DeviceWeights), which has the moments. Counts one step of each active
  // member, and returns the coefficients [M, kParameterGroups], without the clip of tensors. Only
  // trained groups of active members take the step.
  std::vector<StepCoefficients> begin_step(std::span<const double> norms,
                                           const std::vector<bool>& active, double rate_factor);
  // The parts that gradient_norms adds up, in this order.
  std::span<const NormPart> norm_parts() const { return parts_; }
  // The clip of tensors, on the host; tensors are counted without statistics.
  TensorClip tensor_clip() const;

  // State for checkpoints.
  std::span<float> first_moment() { return first_; }    // [M, P]
  std::span<float> second_moment() { return second_; }  // [M, P]
  std::span<std::int64_t> steps() { return steps_; }    // [M] steps taken
  std::span<const float> first_moment() const { return first_; }
  std::span<const float> second_moment() const { return second_; }
  std::span<const std::int64_t> steps() const { return steps_; }

 private:
  struct Range {  // floats of one member with the same decay; a tensor with clip_tensor_norm
    std::int64_t begin, end;
    ParameterGroup group;
  };

  int members() const { return static_cast<int>(steps_.size()); }
  void check_gradients(std::span<const float> gradients, std::int64_t stride) const;
  // The factor of each tensor's gradient, [M, ranges]: 1 for members that are not active.
  std::vector<float> tensor_scales(std::span<const float> flat, std::span<const float> gradients,
                                   std::int64_t stride, const std::vector<bool>& active,
                                   ThreadPool& pool) const;

  OptimizerConfig config_;
  std::int64_t length_;
  std::vector<float> first_, second_;
  std::vector<std::int64_t> steps_;
  std::vector<Range> ranges_;  // ascending: all of [0, P) without statistics
  // The same ranges in blocks, with neighbours merged whatever their decay: the norm's bits must
  // not depend on the decay.
  std::vector<NormPart> parts_;
  std::vector<NormPart> tensor_parts_;  // of ranges, with clip_tensor_norm
};

// `schedule:` of an experiment file: the factor of the learning rate over the steps.
struct ScheduleConfig {
  std::string name = "constant";  // constant, multistep or cosine
  // Multistep: shares of all steps at which the rate falls, ascending, in (0, 1).
  std::vector<double> at;
  double factor = 0.1;  // multistep: by this factor each time
  double warmup = 0;    // share of all steps over which the rate rises linearly, in [0, 1)
  double floor = 0;     // cosine: the least factor
  // Cosine: number of equal cycles after the warm-up; each cycle starts again.
  std::int64_t cycles = 1;
  static ScheduleConfig read(ConfigNode node);

  // Factor of the rate for step `step` (from 0) of `steps`; shares of `steps` are rounded to whole
  // steps. The w steps of the warm-up have the factors 1/w, 2/w, ..., 1 times the schedule's own.
  // The cosine falls from 1 after the warm-up to `floor`, which it would reach one step after the
  // last (Loshchilov & Hutter, "SGDR", 2017).
  double operator()(std::int64_t step, std::int64_t steps) const;
};

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
// ... are the member's weights after the steps selected by `AverageConfig::takes`:
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
// training does not change, such as statistics, keep their bits. Without an average the object is
// empty and does nothing. Not thread-safe; one call at a time.
class WeightAverage {
 public:
  // `length`: floats of a member, P.
  WeightAverage(const AverageConfig& config, std::int64_t length, int members);

  bool is_kept() const { return config_.kind != AverageKind::none; }
  // Adds the weights [M, P] of the active members after step `done` of `steps`, if this step is a
  // point of the average.
  void add(std::span<const float> flat, const std::vector<bool>& active, std::int64_t done,
           std::int64_t steps, ThreadPool& pool);

  // For averages on a device (DeviceWeights). If step `done` of `steps` is a point, counts a point
  // of each active member and returns the points' shares [M], 0 for other members; else returns an
  // empty list.
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
