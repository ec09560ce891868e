#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "data/loading/dataset.hpp"
#include "results/records/initial_and_final_loss.hpp"
#include "results/records/predictions.hpp"
#include "train/experiment/experiment.hpp"
#include "train/scoring/scoring.hpp"

namespace tpudist {

// Records of runs, members and graphs for a prediction file.

// Hash of the settings that influence the numbers, without the seeds and the choice of members.
// Runs of one variant have equal hashes.
std::uint64_t variant_hash(const std::vector<ConfigEntry>& entries);

// `parameter_hash`: of the weights used for scoring; `fold_hash`: training_folds_hash; `init_hash`:
// of the weights at train.init_from.
PredictedRun run_record(const Experiment& experiment, std::int64_t step,
                        std::uint64_t parameter_hash, std::optional<std::uint64_t> fold_hash,
                        std::optional<std::uint64_t> init_hash);

// `alive` [M], `losses` [M]; `run`: index of the run in the file.
std::vector<PredictedMember> member_records(const Experiment& experiment,
                                            const std::vector<bool>& alive,
                                            const std::vector<InitialAndFinalLoss>& losses,
                                            int run);

// A graph of a data set with every measured row. `fold`: the graph's fold, -1 if none; `held_out`:
// [M of the file].
PredictionEntry graph_record(const GraphEntry& entry, std::int64_t most_rows, int fold,
                             std::vector<bool> held_out);

// Scores of the first `members` members of `prediction`; NaN if a member did not score the graph.
PredictionRows scores_record(const Dataset& dataset, const ScoresByMember& prediction, int members);

}  // namespace tpudist
