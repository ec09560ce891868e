#pragma once

#include "core/config/config.hpp"
#include "train/experiment/experiment.hpp"

namespace tpudist {

// Read `batch:`, `train:` and `dist:`. Mistakes are recorded in the document; checks across blocks
// are in refusals.hpp.
BatchConfig read_batch(ConfigNode batch);
TrainConfig read_train(ConfigNode train);
DistConfig read_dist(ConfigNode dist);

}  // namespace tpudist
