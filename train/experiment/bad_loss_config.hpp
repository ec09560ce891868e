#pragma once

#include <limits>

namespace tpudist {

// What becomes of a member whose loss or gradient is not finite, or whose loss is too large.
enum class BadLossPolicy {
  stop,       // it is left out from there on
  skip,       // it takes no step in this batch
  roll_back,  // it goes on from the last regular checkpoint, with half the rate
};

// `train.on_bad_loss` and `train.bad_loss_above`.
struct BadLossConfig {
  BadLossPolicy policy = BadLossPolicy::stop;
  double above = std::numeric_limits<double>::infinity();  // losses above count as bad
};

}  // namespace tpudist
