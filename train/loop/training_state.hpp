#pragma once

#include <cstdint>
#include <filesystem>
#include <vector>

#include "core/aligned.hpp"
#include "models/network.hpp"
#include "train/experiment/experiment.hpp"
#include "train/loop/bad_loss.hpp"
#include "train/loop/early_stop.hpp"
#include "train/optimizer/optimizer.hpp"
#include "train/optimizer/weight_average.hpp"
#include "train/state/checkpoint.hpp"

namespace tpudist {

// All that changes while training. The same bits on every rank.
struct TrainingState {
  TrainingState(const Experiment& experiment, const Network& network);

  // Fills the parameters from the experiment's seeds.
  void initialise(const Experiment& experiment, const Network& network);
  // Sets what each member's encoder standardises by. `statistics` [M].
  void set_statistics(const Network& network, const std::vector<FeatureStatistics>& statistics);

  // Makes `saved` a checkpoint of this state. Memory that it has is used again.
  void copy_to(Checkpoint& saved, const Experiment& experiment, std::uint64_t selection_hash) const;

  // Takes a checkpoint. Throws ConfigError when it belongs to another experiment (naming what
  // differs) or to other data, DataError when it is damaged.
  void restore(const std::filesystem::path& checkpoint, const Experiment& experiment,
               std::uint64_t selection_hash, const ParameterTable& table);

  std::vector<bool> alive() const;       // [M] members that have not failed
  std::vector<bool> training() const;    // [M] of these, members that have not stopped early
  AlignedFloats scored_weights() const;  // [M, P] averages where they are kept, else `flat`
  bool all_failed() const;

  // Where members are rolled back at all: makes this step's weights those that they go back to. Behind
  // steps of regular checkpoints alone, so that it does not depend on when a run was stopped.
  void keep_roll_back();
  // Gives member `m` the weights and moments that were kept last. Throws Error if there are none.
  void roll_back(std::size_t m);

  std::int64_t step = 0;
  AlignedFloats flat;  // [M, P]
  mutable FlatOptimizer optimizer;
  WeightAverage average;
  std::vector<int> failed;  // [M] 1 from the step on at which loss or gradient was not finite
  std::vector<double> best_score;       // [M]
  std::vector<std::int64_t> best_step;  // [M]
  EarlyStop early_stop;
  BadLoss bad_loss;
  std::int64_t roll_back_step = -1;  // at which `kept` was kept; -1: it was not
  SavedWeights kept;
  double train_seconds = 0;

 private:
  void copy_weights(SavedWeights& saved) const;
};

}  // namespace tpudist
