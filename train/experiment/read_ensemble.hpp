#pragma once

#include "core/config/config.hpp"
#include "train/experiment/experiment.hpp"

namespace tpudist {

// Reads `ensemble:`. Mistakes are kept in the document, which reports all of them at once.
EnsembleConfig read_ensemble(ConfigNode ensemble);

}  // namespace tpudist
