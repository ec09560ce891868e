#pragma once

#include "core/config/config.hpp"
#include "train/experiment/experiment.hpp"
#include "train/experiment/scoring_block.hpp"

namespace tpudist {

// Read `evaluate:`, how graphs are scored, and `predictions:`. Mistakes are kept in the document, which
// reports all of them at once.
ScoringBlock read_evaluate(ConfigNode evaluate);
PredictionsConfig read_predictions(ConfigNode predictions);

}  // namespace tpudist
