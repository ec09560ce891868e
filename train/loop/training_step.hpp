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
  // What all calls of a step share.
  struct Shared {
    const StepWork& work;
    const Parameters parameters;
    const std::vector<std::uint64_t> dropout_keys;
  };
  // Members that learn from one unit, in one call of the network.
  struct Call {
    int unit = 0;
    const Unit* data = nullptr;
    std::vector<int> members;    // ascending
    std::vector<double> losses;  // [members]
  };
  struct Members;
  static std::vector<Call> calls_of(const StepWork& work, bool of_neighbours);
  void run_calls(const Shared& step);
  void run_calls_on_device(const Shared& step, std::vector<Call>& calls);
  void run_call(const Shared& step, Call& call);
  void run_chunks(const Shared& step, Call& call, std::span<const std::span<float>> gradients);
  void run_gradient(const Shared& step, const Call& call, const UnitInput& input,
                    const LossGradient& loss, const GradientRows& gradients);
  void add_rows(const Shared& step, const Call& call, std::span<const std::span<float>> rows);
  ScoreGradient loss_gradient(const StepWork& work, Call& call, const UnitScores& scores) const;
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
  BufferCache buffers_;                   // gradients of units
  std::unique_ptr<GradientStore> store_;  // those on a device
  StepTimes times_;
};

}  // namespace tpudist
