#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/aligned.hpp"
#include "data/loading/seen_graphs.hpp"
#include "dist/health/job_context.hpp"
#include "models/network/network.hpp"
#include "results/checkpoints/checkpoint.hpp"
#include "train/experiment/experiment.hpp"
#include "train/loop/member_stops.hpp"
#include "train/loop/segment_scores.hpp"
#include "train/optimizer/device_weights.hpp"
#include "train/units/training_setup.hpp"

namespace tpudist {

// All that changes during training. The same bits on every rank. If the network is on a device, the
// weights are on the device, and come to the host when they are read.
struct TrainingState {
  explicit TrainingState(const TrainingSetup& setup);
  // `segments`: the table of cut graphs (cut_graphs).
  TrainingState(const Experiment& experiment, const Network& network, SegmentTable segments = {});

  // The weights on the host. May wait for the device. Only for the thread that takes the steps.
  const HostWeights& weights() const;
  // The same weights, to be changed: the device takes the changes before its next step.
  HostWeights& change_weights();
  // The weights on the device, for the steps; null on the CPU.
  DeviceWeights* device_weights() { return on_device_.get(); }

  // Sets the parameters from the experiment's seeds.
  void initialise(const Experiment& experiment, const Network& network);
  // Sets the statistics with which each member's encoder standardises. `statistics` [M].
  void set_statistics(const Network& network, const std::vector<FeatureStatistics>& statistics);

  // Copies this state into the checkpoint `saved`, reusing its memory.
  void copy_to(Checkpoint& saved, const Experiment& experiment, std::uint64_t selection_hash) const;

  // Loads a checkpoint. Throws ConfigError when it belongs to another experiment (the message names
  // the difference), to other data or to other segments; DataError when it is damaged.
  void restore(const CheckpointFile& file, const Experiment& experiment,
               std::uint64_t selection_hash, const ParameterTable& table,
               std::optional<std::uint64_t> segment_hash);

  std::vector<bool> alive() const;       // [M] members that have not failed
  std::vector<bool> training() const;    // [M] members that neither failed nor stopped early
  AlignedFloats scored_weights() const;  // [M, P] averages if there are any, else parameters
  bool all_failed() const;
  double checkpoint_bytes() const;  // approximate: parameters, moments, scores of segments

  // Resets best_score and best_step, because evaluations from here on score other rows.
  void forget_best_scores();

  std::int64_t step = 0;
  std::vector<int> failed;         // [M] 1 from the step on whose loss or gradient was not finite
  std::vector<double> best_score;  // [M]
  std::vector<std::int64_t> best_step;  // [M]
  EarlyStop early_stop;
  BadLoss bad_loss;
  SegmentTable segments;
  std::vector<double> losses;              // of all steps so far (add_loss)
  std::optional<std::uint64_t> init_hash;  // of the weights at train.init_from; nothing: unknown
  TrainedOn trained_on;                    // graphs that members knew before the first step
  double train_seconds = 0;

 private:
  std::unique_ptr<HostWeights> weights_;  // on the heap: on_device_ keeps a reference
  std::unique_ptr<DeviceWeights> on_device_;
};

// Members that no longer train, by ascending numbers: members whose loss or gradient was not
// finite; members that stopped early.
std::vector<int> failed_members(const EnsembleConfig& ensemble, const TrainingState& state);
std::vector<EarlyStopped> stopped_members(const EnsembleConfig& ensemble,
                                          const TrainingState& state);

// `train.init_from`: overwrites the initial parameters of all members by the weights of a run's
// last checkpoint (its averages, if it has them) or of a safetensors file. A member takes the
// weights of the run's member with the same number, or of the run's only member. Sets the state's
// `init_hash` and `trained_on`. Returns lines that name the taken tensors. Throws ConfigError when
// the path is neither, the run's member is missing or failed, that member was trained on a graph on
// which this member is scored, or members would be trained alike; DataError when a tensor is
// missing or has another shape, unless it matches `train.init_fresh`.
std::vector<std::string> take_initial_weights(const TrainingSetup& setup, TrainingState& state,
                                              JobContext& context);

// Sets the state before the first step: weights from the seeds or from `train.init_from` (rank 0
// logs which), and the statistics of the encoder. Collective.
void begin_anew(const TrainingSetup& setup, TrainingState& state, JobContext& context);

}  // namespace tpudist
