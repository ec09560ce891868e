#pragma once

#include <filesystem>
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "data/folds/fold_table.hpp"
#include "data/loading/dataset.hpp"
#include "ensemble/predictions.hpp"
#include "train/experiment/context.hpp"
#include "train/experiment/experiment.hpp"
#include "train/scoring/evaluation.hpp"
#include "train/scoring/scoring_blocks.hpp"
#include "train/units/training_setup.hpp"

namespace tpudist {

// Graphs that the same members of a run predict when it has been trained.
struct PredictionPart {
  DatasetOptions data;
  int fold = -1;             // whose graphs these are; -1: the validation split, in no fold
  std::vector<int> members;  // of the run, rising
};

// The training graphs of each fold with the members that hold it out, as far as they did not fail, in
// the order of folds; then the validation split with all members, or, where members train on it, fold
// by fold like the training graphs. No part is without members; folds without a graph of the training
// data are left out.
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

// What goes on while a run predicts.
struct PredictionWatch {
  std::function<bool()> stop_requested;  // asked between some graphs and others, on every rank
  // An evaluation of no graph yet, which gets the graphs of the validation split as they are scored;
  // null: none is wanted.
  Evaluation* evaluation = nullptr;
};

struct WrittenPredictions {
  bool stopped = false;  // on the request of any rank: there is no file
  std::optional<PredictionsHeader>
      header;  // what the file says of itself; none: no graph to predict
};

// Scores `predictions.rows` of the graphs that members hold out, each by those members. Graphs of a
// validation split that no member trains on are scored by all. Rank 0 writes the file `path` part
// by part, so that memory holds the graphs of one fold and the scores of some graphs of it.
// Collective; the same on all ranks.
WrittenPredictions write_predictions(const std::filesystem::path& path, const TrainingSetup& setup,
                                     const TrainedMembers& trained, const PredictionWatch& watch,
                                     JobContext& context);

// What that comes to, for all members: nothing is scored, but sample plans are built. Not collective.
ScoringCost predictions_cost(const TrainingSetup& setup, JobContext& context);

}  // namespace tpudist
