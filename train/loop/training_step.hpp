#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "core/buffer_cache.hpp"
#include "dist/collectives/gradient_reducer.hpp"
#include "dist/health/job_context.hpp"
#include "experiment/experiment.hpp"
#include "train/loop/step_times.hpp"
#include "train/loop/training_state.hpp"
#include "train/units/step_work.hpp"

namespace tpudist {

// The result of a step, the same on every rank.
struct StepResult {
  // [M] weighted mean over the slates from which a member learns, 0 if it had none.
  std::vector<double> loss;
  // [M] of the gradient, before clipping; 0 if there was none.
  std::vector<double> norm;
  std::vector<bool> stepped;  // [M] whether the member had a slate and its loss and gradient were
                              // good
  double rate = 0;            // learning rate of the step
};

// Runs training steps. A step computes the units of this rank in parallel on the threads of the
// pool and sums all ranks' gradients. Then it clips, checks for bad numbers (BadLoss), and updates
// the parameters and their averages. One step at a time.
class TrainingStep {
 public:
  // Borrows all three; they must outlive it. Collective with NCCL.
  TrainingStep(const Experiment& experiment, const Network& network, JobContext& context);
  ~TrainingStep();

  // Collective. Advances state.step by one.
  StepResult run(const StepWork& work, TrainingState& state);

  // Of the last step on this rank; data_wait is not known here.
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
  std::int64_t length_, row_length_;  // P, and P plus the loss after it (padded)
  std::unique_ptr<Communicator> nccl_;
  std::unique_ptr<GradientReducer> reducer_;
  BufferCache buffers_;  // gradients of units
  StepTimes times_;
};

}  // namespace tpudist
