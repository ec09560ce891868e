#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "dist/health/job_context.hpp"
#include "train/experiment/experiment.hpp"
#include "train/loop/rank_forecast.hpp"
#include "train/loop/training_step.hpp"
#include "train/scoring/scoring_session.hpp"
#include "train/units/step_work.hpp"
#include "train/units/training_setup.hpp"

namespace tpudist {

// "12.3 GFLOP", "1.23 TFLOP".
std::string format_operations(double operations);

// The cost of all scoring in an experiment; a part is empty if it scores nothing.
struct EvaluationCosts {
  std::optional<ScoringCost> each;  // of each evaluation before the last step
  std::optional<ScoringCost> last;  // the evaluation after the last step
  std::optional<ScoringCost>
      predictions;  // of graphs that members hold out, and of the validation split
};

// `valid`: the validation split, or null if it has no graphs. Builds sample plans, and scores
// nothing. Not collective.
EvaluationCosts evaluation_costs(const TrainingSetup& setup, const ScoringSession* valid,
                                 JobContext& context);

// The number of evaluations that follow step `done`, without the last one.
std::int64_t evaluations_after(const TrainConfig& train, std::int64_t done);

// The costs as lines: rows, arithmetic, and the same in training steps (of `step_operations` each).
std::string evaluation_text(const Experiment& experiment, const EvaluationCosts& costs,
                            bool has_graphs, double step_operations);

// The plan of a training, made without training.
struct WorkPlan {
  std::string text;  // data, units, memory, evaluations, and each rank's share in the first steps
  EvaluationCosts evaluations;
  // Of the planned steps: of the started ranks, then of those asked for.
  std::vector<RankLoad> loads;
};

// Plans for the largest number of `ranks`, or for the started ranks if there is none. Builds the
// plans of the first steps. Not collective: runs only on the threads of this rank. Throws what
// opening and planning the data throws.
WorkPlan plan_work(const Experiment& experiment, const std::vector<int>& ranks,
                   JobContext& context);

// `train --dry-run`: rank 0 `print`s the plan, then how long a training by the ranks of the context
// takes, and the forecast for the ranks asked for. To measure the time, all ranks of the context take
// a few steps on the real data. Refuses what a training in the folder `run` would refuse. With
// `resume` goes on from the checkpoint in `run`. Writes nothing. Collective.
void dry_run(const Experiment& experiment, const std::filesystem::path& run, bool resume,
             const RankRequest& asked, JobContext& context,
             const std::function<void(std::string_view)>& print);

// Measured times of some steps on this rank.
class MeasuredSteps {
 public:
  // `seconds`: from the end of the previous step to the end of this one.
  void add(const StepWork& work, double seconds, const StepTimes& times);

  int count() const { return count_; }
  // Mean per step.
  double seconds() const { return seconds_ / count_; }
  double optimizer_seconds() const { return optimizer_ / count_; }
  double work() const { return work_ / count_; }  // StepWork::work
  // Seconds that this rank needs to compute `work` with all its threads; 0 if it had no work.
  double seconds_for(double work) const { return work_ > 0 ? work * compute_ / work_ : 0; }
  // The same for scoring, corrected by timed evaluations if there were any.
  double seconds_of_scoring(double work) const { return scoring_scale_ * seconds_for(work); }
  // Adds an evaluation of `work` that took `seconds` on this rank.
  void add_evaluation(double work, double seconds);

 private:
  int count_ = 0;
  double seconds_ = 0, compute_ = 0, optimizer_ = 0, work_ = 0;
  double scoring_scale_ = 1;  // time of an evaluation / seconds_for its work
};

// The remaining time of a training, in seconds.
struct TimeForecast {
  std::int64_t steps = 0, evaluations = 0;
  double step = 0, evaluation = 0;  // of one step, of one evaluation
  double last = 0;  // after the last step: evaluation, predictions, and the wait for the checkpoint

  double total() const;
  std::string text()
      const;  // "600 steps of 45 ms, 2 evaluations of 0.4 s, 1.2 s after the last step"
};

// The forecast after step `done`, for `ranks` ranks that compute like this one and need `step`
// seconds per step. `state_bytes`: size of a checkpoint.
TimeForecast forecast_time(const Experiment& experiment, const MeasuredSteps& measured, double step,
                           int ranks, const EvaluationCosts& costs, double state_bytes,
                           std::int64_t done);

// The duration of a training, as lines, measured by a few steps of all ranks on the real data, and
// the forecast for other ranks. With `resume` the steps go on from the newest checkpoint in the folder
// `run`, which stays unchanged. `plan`: on rank 0; other ranks get no text. Collective. Throws what
// training throws before its first step.
std::string time_text(const Experiment& experiment, const std::filesystem::path& run, bool resume,
                      const RankRequest& asked, const WorkPlan& plan, JobContext& context);

// The bytes that a training takes of the memory of a rank's GPU, without CUDA's and NCCL's own.
struct DeviceBytes {
  std::uint64_t weights = 0;     // parameters, moments, averages
  std::uint64_t gradients = 0;   // of a step's units and members; with several ranks also as slices
  std::uint64_t sums = 0;        // of gradients
  std::int64_t rows = 0;         // of gradients
  std::uint64_t plans = 0;       // of the steps that are prepared, with the inputs of their units
  std::uint64_t pass = 0;        // of the largest pass (Network::leaf_bytes)
  std::uint64_t workspaces = 0;  // of cuBLAS
  std::uint64_t total() const { return weights + gradients + sums + plans + pass + workspaces; }
  // What is kept from step to step.
  std::string text() const;
};

// The bytes of a rank that has its share of the rows; a rank with more rows needs more. Plans the
// part of the rank with most work in the largest step, and the largest unit. Throws DataError or
// IoError when reading fails.
DeviceBytes device_bytes(const TrainingSetup& setup, int ranks);

// "" if `bytes` fits into `memory`, that of a GPU; else the problem and what helps.
std::string device_memory_fault(const DeviceBytes& bytes, std::uint64_t memory);

// The same for one of `ranks` ranks on the GPU of this rank, if it has one.
std::string device_memory_fault(const TrainingSetup& setup, const JobContext& context, int ranks);

// Throws ConfigError if the network is on a GPU with too little memory.
void require_device_memory(const TrainingSetup& setup, const JobContext& context);

}  // namespace tpudist
