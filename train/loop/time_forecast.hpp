#pragma once

#include <cstdint>
#include <string>

#include "train/experiment/context.hpp"
#include "train/experiment/experiment.hpp"
#include "train/loop/dry_run.hpp"
#include "train/loop/evaluation_forecast.hpp"
#include "train/loop/step_times.hpp"
#include "train/units/step_work.hpp"

namespace tpudist {

// What some steps took on this rank.
class MeasuredSteps {
 public:
  explicit MeasuredSteps(const Network& network);

  // `seconds`: from the end of the step before to the end of this one.
  void add(const StepWork& work, double seconds, const StepTimes& times);

  int count() const { return count_; }
  // Of a mean step.
  double seconds() const { return seconds_ / count_; }
  double optimizer_seconds() const { return optimizer_ / count_; }
  double work() const { return work_ / count_; }  // UnitEstimate::step_work
  // That this rank computes for, with all its threads. 0 where it had no work.
  double seconds_for(double work) const { return work_ > 0 ? work * compute_ / work_ : 0; }
  // The same of scoring, by an evaluation that was timed where there was one.
  double seconds_of_scoring(double work) const { return scoring_scale_ * seconds_for(work); }
  // An evaluation of so much work took `seconds` on this rank.
  void add_evaluation(double work, double seconds);

 private:
  const NetworkWork network_;
  int count_ = 0;
  double seconds_ = 0, compute_ = 0, optimizer_ = 0, work_ = 0;
  double scoring_scale_ = 1;  // scoring shares more states than steps do
};

// What is left of a training, in seconds.
struct TimeForecast {
  std::int64_t steps = 0, evaluations = 0;
  double step = 0, evaluation = 0;  // of one
  double last =
      0;  // after the last step: evaluation, predictions, and the checkpoint that is waited for

  double total() const;
  std::string text()
      const;  // "600 steps of 45 ms, 2 evaluations of 0.4 s, 1.2 s after the last step"
};

// After step `done`, on `ranks` ranks that compute like this one and take `step` seconds for a step.
// `state_bytes`: what a checkpoint holds.
TimeForecast forecast_time(const Experiment& experiment, const MeasuredSteps& measured, double step,
                           int ranks, const EvaluationCosts& costs, double state_bytes,
                           std::int64_t done);

// How long a training takes, as lines: all ranks of the context take a few steps on the real data. `plan`:
// of `ranks` ranks, on rank 0; the others get no text. Collective.
std::string time_text(const Experiment& experiment, int ranks, const WorkPlan& plan,
                      JobContext& context);

}  // namespace tpudist
