#pragma once

#include "core/config/config.hpp"
#include "train/experiment/experiment.hpp"
#include "train/experiment/scoring_block.hpp"

namespace tpudist {

// Read `evaluate:` and `predictions:`. Mistakes are recorded in the document.
ScoringBlock read_evaluate(ConfigNode evaluate);
PredictionsConfig read_predictions(ConfigNode predictions);

}  // namespace tpudist
