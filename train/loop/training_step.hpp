#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <utility>
#include <vector>

#include "core/buffer_cache.hpp"
#include "dist/collectives/communicator.hpp"
#include "dist/health/job_context.hpp"
#include "train/experiment/experiment.hpp"
#include "train/loop/segment_scores.hpp"
#include "train/loop/step_side.hpp"
#include "train/loop/training_state.hpp"
#include "train/units/step_work.hpp"

namespace tpudist {

// The parts of the time of one step on one rank, in seconds. Waiting, compute, reduction and
// optimizer follow one another. Another thread reads and plans ahead, and delays a step only by
// data_wait.
struct StepTimes {
  double data_wait = 0;  // until the step's work was prepared
  double reading = 0;    // slates from shards or cache
  double planning = 0;   // plans and inputs of units
  double compute = 0;    // forward and backward passes, and adding this rank's own leaves
  double reduction = 0;  // sum over ranks, including the wait for slower ranks
  double optimizer = 0;  // norms, clip, update and averages
};

// Their names, as in metrics.jsonl.
inline constexpr std::array<std::pair<const char*, double StepTimes::*>, 6> kStepTimes{
    {{"data_wait", &StepTimes::data_wait},
     {"reading", &StepTimes::reading},
     {"planning", &StepTimes::planning},
     {"compute", &StepTimes::compute},
     {"reduction", &StepTimes::reduction},
     {"optimizer", &StepTimes::optimizer}}};

// The times of all ranks, in rank order, on every rank. Collective: one small exchange.
std::vector<StepTimes> gather_times(Communicator& world, const StepTimes& mine);

// The rank with the longest compute time (the lowest of several such ranks), and that time divided
// by the mean of all ranks (1 if nothing was computed). `ranks`: at least one.
std::pair<std::size_t, double> straggler(const std::vector<StepTimes>& ranks);

// {"rank_seconds": {"data_wait": [seconds of each rank], ...}, "slowest_rank": 1,
// "straggler_ratio": 1.04}
nlohmann::json times_json(const std::vector<StepTimes>& ranks);

// The result of a step, the same on every rank.
struct StepResult {
  // [M] weighted mean over the slates from which a member learns, 0 if it had none.
  std::vector<double> loss;
  // [M] norm of the gradient, before clipping; 0 if there was none.
  std::vector<double> norm;
  std::vector<bool> stepped;  // [M] whether the member had a slate, and good loss and gradient
  double rate = 0;            // learning rate of the step
  std::uint64_t bits = 0;     // LossAndNorm::bits; with one rank perhaps 0
};

// Runs training steps. A step computes the units of this rank in parallel on the threads of the
// pool and sums the gradients of all ranks. Then the step clips, checks for bad numbers (BadLoss),
// and updates the parameters and their averages. One step at a time.
class TrainingStep {
 public:
  // Borrows all arguments, which must outlive this object. Collective with NCCL.
  TrainingStep(const Experiment& experiment, const Network& network, JobContext& context);
  ~TrainingStep();

  // Collective. Advances state.step by one.
  StepResult run(const StepWork& work, TrainingState& state);

  // Times of the last step on this rank, without data_wait.
  const StepTimes& times() const { return times_; }

 private:
  // The values that all calls of a step share.
  struct Shared {
    const StepWork& work;
    const Parameters parameters;
    const std::vector<std::uint64_t> dropout_keys;
  };
  using Call = StepCall;
  struct Members;
  static std::vector<Call> calls_of(const StepWork& work);
  void run_calls(const StepWork& work, TrainingState& state);
  void run_joined(const Shared& step, const JoinedPass& pass, std::vector<Call>& calls,
                  std::size_t first, std::size_t count);
  void run_chunks(const Shared& step, Call& call, std::span<const std::span<float>> gradients);
  void run_gradient(const Shared& step, const Call& call, const UnitInput& input,
                    const LossGradient& loss, const GradientRows& gradients);
  ScoreGradient loss_gradient(const StepWork& work, Call& call, const UnitScores& scores);
  bool needs_common() const;
  void add_batch_loss(const BatchLoss& batch, const StepWork& work, Call& call, std::size_t i,
                      const UnitScores& scores, ScoreGradient& gradient) const;
  std::vector<std::uint64_t> dropout_keys(const TrainingState& state) const;
  StepVerdict judge(std::size_t m, const StepResult& result, TrainingState& state);
  StepResult update(const StepWork& work, DeviceWeights::LossAndNorm totals, TrainingState& state);

  const Experiment& experiment_;
  const Network& network_;
  JobContext& context_;
  const std::unique_ptr<StepSide> side_;
  BufferCache buffers_;  // gradients of chunks
  SegmentScores segments_;
  StepTimes times_;
};

}  // namespace tpudist
