#pragma once

#include <cstdint>
#include <functional>

#include "dist/health/job_context.hpp"
#include "experiment/experiment.hpp"
#include "records/run_folder.hpp"
#include "train/loop/run_checkpoints.hpp"
#include "train/loop/run_report.hpp"
#include "train/loop/time_limit.hpp"
#include "train/loop/train_outcome.hpp"
#include "train/loop/training_state.hpp"
#include "train/loop/validation.hpp"
#include "train/units/training_setup.hpp"

namespace tpudist {

// Scores a run's members during training and acts on the scores. Evaluations before the last step
// keep the best ensemble and stop members that do not improve. After the last step come the last
// evaluation and the predictions. Borrows all its arguments, and changes the state's best scores
// and early stops. Its methods are collective.
class RunEvaluation {
 public:
  // Opens the validation split, see Validation.
  RunEvaluation(const Experiment& experiment, const TrainingSetup& setup, const RunFolder& run,
                RunCheckpoints& checkpoints, RunReport& report, TrainingState& state,
                JobContext& context);

  // On rank 0, logs which members are scored on which graphs, if members train on the validation
  // split.
  void log_graphs(const TrainedOn& trained) const;

  // Whether the validation split has graphs to score.
  bool has_graphs() const { return validation_.has_graphs(); }

  // The costs of all evaluations and predictions of the run. Not collective.
  EvaluationCosts costs() const { return validation_.costs(); }

  // After each step but the last: evaluates if `train.evaluate_every` says so.
  void step();

  // After the last step: sets `evaluation` and `out_of_fold`, and writes scores.json and the
  // predictions. `wish` returns whether this rank wants to stop; then `stopped` and `out_of_time`
  // are set on all ranks, and what is not scored to its end is not written.
  void finish(TrainOutcome& outcome, const std::function<StepDecision()>& wish);

 private:
  bool root() const { return context_.world.rank() == 0; }
  std::int64_t last_rows() const;
  Evaluation evaluate(std::int64_t rows, const std::function<bool()>& stops = {});
  void record(const Evaluation& evaluation);
  void stop_members(const Evaluation& evaluation);
  void predict(TrainOutcome& outcome, bool evaluates, const std::function<bool()>& stops);
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
