#pragma once

#include <filesystem>
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "dist/health/job_context.hpp"
#include "results/records/initial_and_final_loss.hpp"
#include "results/records/predictions.hpp"
#include "train/experiment/experiment.hpp"
#include "train/scoring/evaluation.hpp"
#include "train/scoring/scoring_blocks.hpp"
#include "train/units/training_setup.hpp"

namespace tpudist {

// The trained members of a run.
struct TrainedMembers {
  std::span<const float> flat;  // [M, P] the weights to score with
  std::vector<bool> alive;      // [M]
  std::int64_t step = 0;
  std::vector<InitialAndFinalLoss> losses;  // [M]; only rank 0 needs them
  std::optional<std::uint64_t> init_hash;   // of the weights at train.init_from
};

// Hooks while a run predicts.
struct PredictionWatch {
  // Called on every rank before each group of graphs; must return the same on all ranks.
  std::function<bool()> stops;
  // An empty evaluation that receives the validation graphs as they are scored; null: not wanted.
  Evaluation* evaluation = nullptr;
};

struct WrittenPredictions {
  bool stopped = false;                     // by the watch: no file was written
  std::optional<PredictionsHeader> header;  // header of the file; none: no graph to predict
};

// Scores `predictions.rows` rows of each graph that members hold out, by those members. All members
// score a validation split on which none trains. Rank 0 writes the file `path` part by part, so
// that memory holds the graphs of one fold and the scores of some of its graphs. Collective; the
// result is the same on all ranks.
WrittenPredictions write_predictions(const std::filesystem::path& path, const TrainingSetup& setup,
                                     const TrainedMembers& trained, const PredictionWatch& watch,
                                     JobContext& context);

// The cost of these predictions for all members, from sample plans. Not collective.
ScoringCost predictions_cost(const TrainingSetup& setup, JobContext& context);

}  // namespace tpudist
