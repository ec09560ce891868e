#pragma once

#include "core/config/config.hpp"
#include "train/experiment/experiment.hpp"

namespace tpudist {

// Reads `data:`. Mistakes are recorded in the document.
DataConfig read_data(ConfigNode data);

}  // namespace tpudist
