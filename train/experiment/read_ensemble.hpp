#pragma once

#include "core/config/config.hpp"
#include "train/experiment/experiment.hpp"

namespace tpudist {

// Reads `ensemble:`. Mistakes are recorded in the document.
EnsembleConfig read_ensemble(ConfigNode ensemble);

}  // namespace tpudist
