#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "core/config/config.hpp"
#include "core/thread_pool.hpp"
#include "models/kernels/flat_steps.hpp"
#include "models/parameters/parameter_table.hpp"

namespace tpudist {

// `optimizer:` of an experiment file.
struct OptimizerConfig {
  std::string name = "adamw";  // adamw (decoupled decay) or adam (decay as an L2 term)
  double rate = 1e-3;          // lr
  double beta1 = 0.9, beta2 = 0.999;
  double eps = 1e-8;
  double clip_norm = 0;         // largest norm of a member's gradient; 0 = no clipping
  double clip_tensor_norm = 0;  // the same of each tensor by itself; not both
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
// step. Statistics are excluded: they keep their bits and are in no norm. The update is
// elementwise, so its bits do not depend on threads; padding stays zero. Not thread-safe; one call
// at a time.
class FlatOptimizer {
 public:
  FlatOptimizer(const OptimizerConfig& config, const ParameterTable& table, int members);

  // Norm of each member's gradient, [M], in double over fixed blocks: the same bits for any number
  // of threads. Members lie `stride` >= P floats apart. NaN or infinite if the gradient is.
  // Statistics are excluded.
  std::vector<double> gradient_norms(std::span<const float> gradients, std::int64_t stride,
                                     ThreadPool& pool) const;

  // One step of each active member with rate = config.rate * its rate factor. The gradient is first
  // scaled by min(1, clip_norm / (norm + 1e-6)), as in torch's clip_grad_norm_, or that of each
  // tensor by its own norm. `flat` is [M, P]; `norms` [M] is read only with clip_norm. The caller
  // must pass members with a norm that is not finite as inactive. Throws Error for a wrong size.
  void step(std::span<float> flat, std::span<const float> gradients, std::int64_t stride,
            std::span<const double> norms, const std::vector<bool>& active,
            const std::vector<double>& rate_factors, ThreadPool& pool);

  // For steps on a device (DeviceWeights), with the moments there. Counts one step of each active
  // member, and returns the coefficients [M, kParameterGroups], without the clip of tensors; only
  // those of trained groups of active members take the step.
  std::vector<StepCoefficients> begin_step(std::span<const double> norms,
                                           const std::vector<bool>& active,
                                           const std::vector<double>& rate_factors);
  // What gradient_norms adds up, in this order.
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
  // The same without regard to decay, neighbours merged, by blocks: the norm's bits do not depend
  // on the decay.
  std::vector<NormPart> parts_;
  std::vector<NormPart> tensor_parts_;  // of ranges, with clip_tensor_norm
};

}  // namespace tpudist
