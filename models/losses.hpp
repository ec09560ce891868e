#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "core/config/config.hpp"

namespace tpudist {

// A ranking loss on one slate. Torch-free: K numbers in double. Immutable, thread-safe.
class SlateLoss {
 public:
  virtual ~SlateLoss() = default;

  // A loss, and whether at these scores a constant added to all of them changes nothing, so that
  // the gradient sums to 0 apart from rounding.
  struct Value {
    double loss = 0;
    bool shift_free = true;
  };

  // Loss of scores [K] against targets [K] (smaller target = better = should get the smaller
  // score), and d loss / d score into `gradient` [K]. `tie_key` decides the order of equal targets
  // (a pure function of seed, member, step, slate). K = 1 gives 0 and a zero gradient.
  virtual Value evaluate(std::span<const double> scores, std::span<const double> targets,
                         std::uint64_t tie_key, std::span<double> gradient) const = 0;
  // True when a constant added to all scores of a slate changes nothing, whatever the scores.
  virtual bool ignores_shift() const = 0;
};

// Reads `loss:`, a map of weighted terms, e.g. {list_mle: {weight: 1, clip_norm: 500}}. At least
// one term.
std::unique_ptr<SlateLoss> read_loss(ConfigNode loss);

}  // namespace tpudist
