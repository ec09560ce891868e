#pragma once

#include "core/config/config.hpp"
#include "train/experiment/experiment.hpp"

namespace tpudist {

// Reads `data:`. Mistakes are kept in the document, which reports all of them at once.
DataConfig read_data(ConfigNode data);

}  // namespace tpudist
