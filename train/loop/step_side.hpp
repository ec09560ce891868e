#pragma once

#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "dist/health/job_context.hpp"
#include "train/experiment/experiment.hpp"
#include "train/loop/training_state.hpp"
#include "train/units/step_work.hpp"

namespace tpudist {

// Members that learn from one unit, in one call of the network.
struct StepCall {
  int unit = 0;
  const Unit* data = nullptr;
  std::vector<int> members;    // ascending
  std::vector<double> losses;  // [members], once the gradients are computed
};

// Adds up the gradients of a step and steps the state, on the host or on a device. Call the methods
// in this order, from one thread except add().
class StepSide {
 public:
  virtual ~StepSide() = default;

  // Starts a step of these calls. Returns their parameters, valid until the state changes.
  virtual Parameters begin(const BatchPlan& batch, const std::vector<StepCall>& calls,
                           TrainingState& state) = 0;
  // Adds calls, from any thread: `gradient` computes their gradients together into the given rows, P
  // for each member of each call, and sets their losses. `index`: of the first call.
  virtual void add(std::span<const StepCall> calls, std::size_t index,
                   const std::function<void(const GradientRows&)>& gradient) = 0;
  // Sums the gradients of all ranks. Collective.
  virtual void reduce() = 0;
  // The weighted mean loss of each member, and the norm of its gradient, before clipping.
  virtual DeviceWeights::LossAndNorm totals(TrainingState& state) = 0;
  // FlatOptimizer::step on the reduced sums.
  virtual void step(TrainingState& state, const std::vector<double>& norms,
                    const std::vector<bool>& active, double rate_factor) = 0;
  // WeightAverage::add of the members that train, after step `state.step`.
  virtual void add_point(TrainingState& state) = 0;
};

// Borrow all arguments. Collective with NCCL.
std::unique_ptr<StepSide> make_host_side(const Experiment& experiment, const Network& network,
                                         JobContext& context);
std::unique_ptr<StepSide> make_device_side(const Experiment& experiment, const Network& network,
                                           JobContext& context);

inline constexpr std::int64_t kRowExtra = 16;  // floats after a gradient: the loss, padded

}  // namespace tpudist
