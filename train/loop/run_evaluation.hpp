#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "data/loading/seen_graphs.hpp"
#include "dist/health/job_context.hpp"
#include "results/records/run_folder.hpp"
#include "train/experiment/experiment.hpp"
#include "train/loop/forecast.hpp"
#include "train/loop/run_checkpoints.hpp"
#include "train/loop/run_report.hpp"
#include "train/loop/time_limit.hpp"
#include "train/loop/trainer.hpp"
#include "train/loop/training_state.hpp"
#include "train/scoring/evaluation.hpp"
#include "train/units/training_setup.hpp"

namespace tpudist {

// The validation split of a run, on which its members are scored during and after training. If
// members train on that split, only the members that hold a graph out score the graph. Borrows all
// arguments.
class Validation {
 public:
  // Opens the split, if it has graphs. Collective: ranks compare their data. Throws ConfigError if
  // the experiment needs the split and it has no graphs, and what Dataset::open throws.
  Validation(const TrainingSetup& setup, JobContext& context);

  bool has_graphs() const { return session_.has_value(); }

  // The costs of the run's evaluations and predictions. Builds sample plans; not collective.
  EvaluationCosts costs() const;

  // An evaluation without graphs, for the members that `alive` flags; the split must have graphs.
  Evaluation start(const std::vector<bool>& alive, std::int64_t most_rows) const;
  // Scores at most `most_rows` rows of each graph (0 = all) with the weights `flat` [M, P]. The
  // split must have graphs. `stops`: as in evaluate_members. Collective.
  Evaluation evaluate(std::span<const float> flat, const std::vector<bool>& alive,
                      std::int64_t most_rows, const std::function<bool()>& stops = {}) const;

  // Warns of scored graphs whose families members train on. If members train on the split, logs on
  // which graphs the members of each fold are scored.
  void log_graphs(const TrainedOn& trained) const;

 private:
  const TrainingSetup& setup_;
  JobContext& context_;
  std::optional<ScoringSession> session_;
};

// Scores a run's members during training and acts on the scores. Evaluations before the last step
// keep the best ensemble and stop members that do not improve. The last evaluation and the
// predictions follow the last step. Borrows all arguments, and changes the state's best scores and
// early stops. Methods are collective.
class RunEvaluation {
 public:
  // Opens the validation split, see Validation.
  RunEvaluation(const TrainingSetup& setup, const RunFolder& run, RunCheckpoints& checkpoints,
                RunReport& report, TrainingState& state, JobContext& context);

  const Validation& validation() const { return validation_; }

  // After each step but the last: evaluates if `train.evaluate_every` says so.
  void step();

  // After the last step: sets `evaluation` and `out_of_fold` of the outcome, and writes scores.json
  // and the predictions. `wish` returns whether this rank wants to stop. A stop sets `stopped` and
  // `out_of_time` on all ranks, and writes nothing that is not completely scored.
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
