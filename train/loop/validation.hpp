#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "train/experiment/context.hpp"
#include "train/experiment/experiment.hpp"
#include "train/loop/evaluation_forecast.hpp"
#include "train/scoring/evaluation.hpp"
#include "train/units/training_setup.hpp"

namespace tpudist {

// The validation split of a run, with which its members are scored on the way and at the end. Where
// members train on that split, each graph is scored by those that hold it out. Borrows all that it is
// made of.
class Validation {
 public:
  // Opens the split, if it has graphs. Collective: ranks compare what they see. Throws ConfigError
  // where it has none and the experiment needs it, and what Dataset::open throws.
  Validation(const Experiment& experiment, const TrainingSetup& setup, JobContext& context);

  bool has_graphs() const { return session_.has_value(); }

  // What the run's evaluations and predictions come to. Builds sample plans, and is not collective.
  EvaluationCosts costs() const;

  // An evaluation of no graph yet, of the members that `alive` flags; needs graphs.
  Evaluation start(const std::vector<bool>& alive, std::int64_t most_rows) const;
  // Scores at most `most_rows` rows of each graph (0 = all) with the weights `flat` [M, P]. Needs
  // graphs. Collective.
  Evaluation evaluate(std::span<const float> flat, const std::vector<bool>& alive,
                      std::int64_t most_rows) const;

  // Logs, where members train on the split, which graphs the members of each fold are scored on.
  void log_held_out() const;

 private:
  const Experiment& experiment_;
  const TrainingSetup& setup_;
  JobContext& context_;
  std::optional<ScoringSession> session_;
};

}  // namespace tpudist
