#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "data/loading/seen_graphs.hpp"
#include "dist/health/job_context.hpp"
#include "experiment/experiment.hpp"
#include "inference/evaluation.hpp"
#include "train/loop/evaluation_forecast.hpp"
#include "train/units/training_setup.hpp"

namespace tpudist {

// The validation split of a run, on which its members are scored during and after training. If
// members train on that split, each graph is scored by those that hold it out. Borrows all its
// arguments.
class Validation {
 public:
  // Opens the split, if it has graphs. Collective: ranks compare their data. Throws ConfigError if
  // it has none and the experiment needs it, and what Dataset::open throws.
  Validation(const Experiment& experiment, const TrainingSetup& setup, JobContext& context);

  bool has_graphs() const { return session_.has_value(); }

  // The costs of the run's evaluations and predictions. Builds sample plans; not collective.
  EvaluationCosts costs() const;

  // An evaluation without graphs, for the members that `alive` flags; the split must have graphs.
  Evaluation start(const std::vector<bool>& alive, std::int64_t most_rows) const;
  // Scores at most `most_rows` rows of each graph (0 = all) with the weights `flat` [M, P]. The
  // split must have graphs. `stops`: as in evaluate_members. Collective.
  Evaluation evaluate(std::span<const float> flat, const std::vector<bool>& alive,
                      std::int64_t most_rows, const std::function<bool()>& stops = {}) const;

  // Warns where graphs that are scored have families that members train on. If members train on the
  // split, logs on which graphs the members of each fold are scored.
  void log_graphs(const TrainedOn& trained) const;

 private:
  const Experiment& experiment_;
  const TrainingSetup& setup_;
  JobContext& context_;
  std::optional<ScoringSession> session_;
};

}  // namespace tpudist
