#pragma once

#include "core/config/config.hpp"
#include "train/experiment/experiment.hpp"

namespace tpudist {

// Read the keys of `train:` and `dist:` about time limits and faults. Mistakes are recorded in the
// document.

// `train.time_limit`.
TimeLimitConfig read_time_limit(ConfigNode& train);
// `train.on_bad_loss` and `train.bad_loss_above`; `config`: the keys of `train` read so far.
BadLossConfig read_bad_loss(ConfigNode& train, const TrainConfig& config);
// `dist.timeout`, seconds.
double read_timeout(ConfigNode& dist);

}  // namespace tpudist
