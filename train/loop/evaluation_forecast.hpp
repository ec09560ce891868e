#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "core/thread_pool.hpp"
#include "inference/scoring_session.hpp"
#include "train/units/training_setup.hpp"

namespace tpudist {

// "12.3 GFLOP", "1.23 TFLOP".
std::string format_operations(double operations);

// The cost of all scoring in an experiment; a part is empty where nothing is scored.
struct EvaluationCosts {
  std::optional<ScoringCost> each;  // of each evaluation before the last step
  std::optional<ScoringCost> last;  // the evaluation after the last step
  std::optional<ScoringCost>
      predictions;  // of graphs that members hold out, and of the validation split
};

// `valid`: the validation split, or null where it has no graphs. Builds sample plans, and scores
// nothing. Not collective.
EvaluationCosts evaluation_costs(const TrainingSetup& setup, const ScoringSession* valid,
                                 JobContext& context);

// The number of evaluations that follow step `done`, without the last one.
std::int64_t evaluations_after(const Experiment& experiment, std::int64_t done);

// The costs as lines: rows, arithmetic, and the same in training steps (of `step_operations` each).
std::string evaluation_text(const Experiment& experiment, const EvaluationCosts& costs,
                            bool has_graphs, double step_operations);

}  // namespace tpudist
