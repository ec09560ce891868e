#pragma once

#include <cstdint>
#include <string>

#include "dist/health/job_context.hpp"
#include "experiment/experiment.hpp"
#include "train/loop/dry_run.hpp"
#include "train/loop/evaluation_forecast.hpp"
#include "train/loop/step_times.hpp"
#include "train/units/step_work.hpp"

namespace tpudist {

// Measured times of some steps on this rank.
class MeasuredSteps {
 public:
  explicit MeasuredSteps(const Network& network);

  // `seconds`: from the end of the previous step to the end of this one.
  void add(const StepWork& work, double seconds, const StepTimes& times);

  int count() const { return count_; }
  // Mean per step.
  double seconds() const { return seconds_ / count_; }
  double optimizer_seconds() const { return optimizer_ / count_; }
  double work() const { return work_ / count_; }  // UnitEstimate::step_work
  // Seconds for which this rank computes `work` with all its threads. 0 if it had no work.
  double seconds_for(double work) const { return work_ > 0 ? work * compute_ / work_ : 0; }
  // The same for scoring, corrected by timed evaluations if there were any.
  double seconds_of_scoring(double work) const { return scoring_scale_ * seconds_for(work); }
  // Adds an evaluation of `work` that took `seconds` on this rank.
  void add_evaluation(double work, double seconds);

 private:
  const NetworkWork network_;
  int count_ = 0;
  double seconds_ = 0, compute_ = 0, optimizer_ = 0, work_ = 0;
  double scoring_scale_ = 1;  // time of an evaluation / seconds_for its work
};

// The remaining time of a training, in seconds.
struct TimeForecast {
  std::int64_t steps = 0, evaluations = 0;
  double step = 0, evaluation = 0;  // of one
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

// The duration of a training, as lines: all ranks of the context take a few steps on the real data.
// With `resume` they go on from the newest checkpoint in the folder `run`, which stays as it is.
// `plan`: for `ranks` ranks, on rank 0; other ranks get no text. Collective. Throws what training
// throws before its first step.
std::string time_text(const Experiment& experiment, const std::filesystem::path& run, bool resume,
                      int ranks, const WorkPlan& plan, JobContext& context);

}  // namespace tpudist
