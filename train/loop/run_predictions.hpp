#pragma once

#include <filesystem>
#include <functional>

#include "dist/health/job_context.hpp"
#include "train/loop/training_state.hpp"
#include "train/scoring/evaluation.hpp"
#include "train/scoring/scoring_blocks.hpp"
#include "train/units/training_setup.hpp"

namespace tpudist {

// What write_predictions did: a file has all predictions, or there was no graph to predict, or a
// stop was asked for.
enum class Predicted { all, nothing, stopped };

// Scores `predictions.rows` rows of each graph that members hold out, by those members, with the
// weights of the state. All members score a validation split on which none trains. Rank 0 writes
// the file `path` part by part, so that memory holds the graphs of one fold and the scores of some
// of its graphs; without all predictions there is no file. Calls `stops` on every rank before each
// group of graphs; it must return the same on all ranks. `evaluation`: an empty one that receives
// the validation graphs as they are scored; null: not wanted. Collective.
Predicted write_predictions(const std::filesystem::path& path, const TrainingSetup& setup,
                            const TrainingState& state, JobContext& context,
                            const std::function<bool()>& stops, Evaluation* evaluation);

// The cost of these predictions for all members, from sample plans. Not collective.
ScoringCost predictions_cost(const TrainingSetup& setup, JobContext& context);

}  // namespace tpudist
