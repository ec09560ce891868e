#pragma once

#include <limits>

namespace tpudist {

// What to do with a member whose loss or gradient is not finite, or whose loss is too large.
enum class BadLossPolicy {
  stop,       // drop it for the rest of the training
  skip,       // it takes no step in this batch
  roll_back,  // return to the last regular checkpoint, with half the learning rate
};

// `train.on_bad_loss` and `train.bad_loss_above`.
struct BadLossConfig {
  BadLossPolicy policy = BadLossPolicy::stop;
  double above = std::numeric_limits<double>::infinity();  // larger losses count as bad
};

}  // namespace tpudist
