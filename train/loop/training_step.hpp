#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "core/buffer_cache.hpp"
#include "dist/gradient_reducer.hpp"
#include "train/experiment/context.hpp"
#include "train/experiment/experiment.hpp"
#include "train/loop/step_times.hpp"
#include "train/loop/training_state.hpp"
#include "train/units/step_work.hpp"

namespace tpudist {

// What a step gave, the same on every rank.
struct StepResult {
  // [M] weighted mean over the slates that a member learns from, 0 where it had none.
  std::vector<double> loss;
  // [M] of the gradient, before it is clipped, 0 where there was none.
  std::vector<double> norm;
  std::vector<bool> stepped;  // [M] whether the member had a slate, and its numbers were good
  double rate = 0;            // learning rate of the step
};

// Runs training steps: the units of this rank side by side on the threads of the pool, the sum of all
// ranks' gradients, the clip, the check for bad numbers (BadLoss), the update of the parameters
// and that of their averages. One step at a time.
class TrainingStep {
 public:
  // All three are borrowed and outlive it. Collective where GPUs are joined by NCCL.
  TrainingStep(const Experiment& experiment, const Network& network, JobContext& context);
  ~TrainingStep();

  // Collective. Advances state.step by one.
  StepResult run(const StepWork& work, TrainingState& state);

  // Of the last step on this rank; the wait for its data is not known here.
  const StepTimes& times() const { return times_; }

 private:
  void run_pass(const StepWork& work, const UnitPass& pass, const TrainingState& state);
  void run_chunks(const StepWork& work, const UnitPass& pass, const TrainingState& state,
                  std::span<const std::span<float>> gradients, std::vector<double>& losses);
  void run_gradient(const UnitPass& pass, const UnitInput& input, const TrainingState& state,
                    const LossGradient& loss, std::span<const std::span<float>> gradients);
  ScoreGradient loss_gradient(const StepWork& work, const UnitPass& pass, const UnitScores& scores,
                              std::vector<double>& losses) const;
  std::vector<std::uint64_t> dropout_keys(const TrainingState& state) const;
  StepVerdict judge(std::size_t m, const StepResult& result, TrainingState& state);
  void take_step(std::span<const float> sums, const StepResult& result, double factor,
                 TrainingState& state);
  StepResult update(const StepWork& work, std::span<const float> sums, TrainingState& state);

  const Experiment& experiment_;
  const Network& network_;
  JobContext& context_;
  std::int64_t length_, row_length_;  // P, and P + the loss behind it (padded)
  std::unique_ptr<Communicator> nccl_;
  std::unique_ptr<GradientReducer> reducer_;
  BufferCache buffers_;  // gradients of units
  StepTimes times_;
};

}  // namespace tpudist
