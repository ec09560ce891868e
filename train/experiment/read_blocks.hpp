#pragma once

#include <cstdint>
#include <string_view>

#include "core/config/config.hpp"
#include "train/experiment/experiment.hpp"
#include "train/experiment/scoring_block.hpp"

namespace tpudist {

// The largest allowed number where no other limit applies.
inline constexpr std::int64_t kMany = std::int64_t{1} << 40;

// The number under `key`, from 1 to `max`.
inline int positive(ConfigNode& node, std::string_view key, int fallback, int max = 1 << 20) {
  return static_cast<int>(node.integer(key, fallback, {1, max}));
}

// Each function reads one block of an experiment file and records mistakes in the document.
// read_experiment finds contradictions between blocks.
DataConfig read_data(ConfigNode data);
BatchConfig read_batch(ConfigNode batch);
TrainConfig read_train(ConfigNode train);
ScoringBlock read_evaluate(ConfigNode evaluate);
EnsembleConfig read_ensemble(ConfigNode ensemble);
PredictionsConfig read_predictions(ConfigNode predictions);
DistConfig read_dist(ConfigNode dist);

}  // namespace tpudist
