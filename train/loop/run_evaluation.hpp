#pragma once

#include <cstdint>
#include <functional>

#include "train/experiment/context.hpp"
#include "train/experiment/experiment.hpp"
#include "train/loop/run_checkpoints.hpp"
#include "train/loop/run_report.hpp"
#include "train/loop/step_boundary.hpp"
#include "train/loop/train_outcome.hpp"
#include "train/loop/training_state.hpp"
#include "train/loop/validation.hpp"
#include "train/state/run_folder.hpp"
#include "train/units/training_setup.hpp"

namespace tpudist {

// What a run's members are scored on, and what follows from it: evaluations on the way, which keep the
// best ensemble and let members go that do not get better, and behind the last step the last evaluation
// and the predictions. Borrows all that it is made of, and changes the state's best scores and early
// stops. Its methods are collective.
class RunEvaluation {
 public:
  // Opens the validation split, see Validation.
  RunEvaluation(const Experiment& experiment, const TrainingSetup& setup, const RunFolder& run,
                RunCheckpoints& checkpoints, RunReport& report, TrainingState& state,
                JobContext& context);

  // Logs, on rank 0, which graphs members are scored on that train on the validation split.
  void log_held_out() const;

  // What all evaluations and predictions of the run come to. Not collective.
  EvaluationCosts costs() const { return validation_.costs(); }

  // Behind each step but the last: evaluates where `train.evaluate_every` says so.
  void step();

  // Behind the last step: fills in `evaluation` and `out_of_fold`, and writes scores.json and the
  // predictions. `wish` says on each rank whether it is to stop, which sets `stopped` and
  // `out_of_time`: then there are no predictions.
  void finish(TrainOutcome& outcome, const std::function<StepDecision()>& wish);

 private:
  bool root() const { return context_.world.rank() == 0; }
  std::int64_t last_rows() const;
  Evaluation evaluate(std::int64_t rows);
  void record(const Evaluation& evaluation);
  void stop_members(const Evaluation& evaluation);
  void predict(TrainOutcome& outcome, bool evaluates, const std::function<StepDecision()>& wish);
  void log_scores(TrainOutcome& outcome, bool predicted);

  const Experiment& experiment_;
  const TrainingSetup& setup_;
  const RunFolder& run_;
  RunCheckpoints& checkpoints_;
  RunReport& report_;
  TrainingState& state_;
  JobContext& context_;
  const Validation validation_;
};

}  // namespace tpudist
