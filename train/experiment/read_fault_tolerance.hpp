#pragma once

#include "core/config/config.hpp"
#include "train/experiment/experiment.hpp"

namespace tpudist {

// Read what `train:` and `dist:` say of runs that outlast their time or get into trouble. Mistakes are
// kept in the document.

// `train.time_limit`.
TimeLimitConfig read_time_limit(ConfigNode& train);
// `train.on_bad_loss` and `train.bad_loss_above`; `config`: what was read of `train` before.
BadLossConfig read_bad_loss(ConfigNode& train, const TrainConfig& config);
// `dist.timeout`, seconds.
double read_timeout(ConfigNode& dist);

}  // namespace tpudist
