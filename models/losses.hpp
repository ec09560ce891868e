#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "core/config/config.hpp"

namespace tpudist {

// A ranking loss on the K scores of one slate, in double and without LibTorch. Immutable,
// thread-safe.
class SlateLoss {
 public:
  virtual ~SlateLoss() = default;

  // The loss is translation-invariant at these scores when a constant added to all of them does not
  // change it. Its gradient then sums to 0 apart from rounding.
  struct Value {
    double loss = 0;
    bool translation_invariant = true;
  };

  // Returns the loss of scores [K] against targets [K], and writes d loss / d score into `gradient`
  // [K]. A smaller target is better and should get a smaller score. `tie_key` decides the order of
  // equal targets; it is a pure function of seed, member, step and slate. K = 1 gives 0 and a zero
  // gradient.
  virtual Value evaluate(std::span<const double> scores, std::span<const double> targets,
                         std::uint64_t tie_key, std::span<double> gradient) const = 0;
  // Whether the loss is translation-invariant at all scores.
  virtual bool is_translation_invariant() const = 0;
};

// Reads `loss:`, a map of weighted terms, e.g. {list_mle: {weight: 1, clip_norm: 500}}. Throws
// ConfigError when there is no term.
std::unique_ptr<SlateLoss> read_loss(ConfigNode loss);

}  // namespace tpudist
