#pragma once

#include "core/config/config.hpp"
#include "train/experiment/experiment.hpp"

namespace tpudist {

// Read `batch:`, `train:` and `dist:`. Mistakes are kept in the document, which reports all of them at
// once; what refuses keys of other blocks is in refusals.hpp.
BatchConfig read_batch(ConfigNode batch);
TrainConfig read_train(ConfigNode train);
DistConfig read_dist(ConfigNode dist);

}  // namespace tpudist
