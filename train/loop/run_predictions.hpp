#pragma once

#include <filesystem>
#include <optional>
#include <span>
#include <vector>

#include "data/folds/fold_table.hpp"
#include "data/loading/dataset.hpp"
#include "ensemble/predictions.hpp"
#include "train/experiment/context.hpp"
#include "train/experiment/experiment.hpp"
#include "train/scoring/scoring_blocks.hpp"
#include "train/units/training_setup.hpp"

namespace tpudist {

// Graphs that the same members of a run predict when it has been trained.
struct PredictionPart {
  DatasetOptions data;
  int fold = -1;             // whose graphs these are; -1: the validation split
  std::vector<int> members;  // of the run, rising
};

// The folds with the members that hold them out, as far as they did not fail, in the order of folds,
// and then the validation split with all of them. No part is without members; folds without a graph
// of the training data are left out.
std::vector<PredictionPart> prediction_parts(const Experiment& experiment, const FoldTable& folds,
                                             const Dataset& training,
                                             const std::vector<bool>& alive);

// What a run is when it predicts.
struct TrainedMembers {
  std::span<const float> flat;  // [M, P] the weights that are to be scored
  std::vector<bool> alive;      // [M]
  std::int64_t step = 0;
  std::filesystem::path metrics;  // of the run
};

// Scores `predictions.rows` of the graphs that members hold out, each by those members, and of the
// validation split by all of them, and writes the file `path`: rank 0 does, part by part, so that
// memory holds the graphs of one fold and the scores of some graphs of it. Nothing where there is no
// graph to predict. Collective. Returns what the file says of itself, the same on all ranks.
std::optional<PredictionsHeader> write_predictions(const std::filesystem::path& path,
                                                   const TrainingSetup& setup,
                                                   const TrainedMembers& trained,
                                                   JobContext& context);

// What that comes to, for all members: nothing is scored, but sample plans are built. Not collective.
ScoringCost predictions_cost(const TrainingSetup& setup, ThreadPool& pool);

}  // namespace tpudist
