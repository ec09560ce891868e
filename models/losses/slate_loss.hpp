#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string_view>

namespace tpudist {

struct BatchLoss;

// A loss on the K scores of one slate, in double. Immutable, thread-safe.
class SlateLoss {
 public:
  virtual ~SlateLoss() = default;

  // The loss is translation-invariant at these scores if adding a constant to all of them does not
  // change it. Its gradient then sums to 0 up to rounding.
  struct Value {
    double loss = 0;
    bool translation_invariant = true;
  };

  // Returns the loss of scores [K] against targets [K], and writes d loss / d score into `gradient`
  // [K]. A smaller target is better and should get a smaller score. `tie_key` decides the order of
  // equal targets if the loss needs one; it is a pure function of seed, member, step and slate. A
  // loss that compares configurations gives 0 and a zero gradient for K = 1. A NaN score gives a
  // NaN loss, unless nothing is compared with it. Throws DataError when a target is not finite,
  // Error when the lengths differ.
  virtual Value evaluate(std::span<const double> scores, std::span<const double> targets,
                         std::uint64_t tie_key, std::span<double> gradient) const = 0;
  // Whether the loss is translation-invariant at all scores.
  virtual bool is_translation_invariant() const = 0;

  // A loss on the scores of all slates of a batch, one after another, which adds to the losses of
  // the slates; null: none. is_translation_invariant() must take it into account.
  virtual const BatchLoss* of_batch() const { return nullptr; }
};

// A loss on all slates of a batch at once.
struct BatchLoss {
  std::unique_ptr<const SlateLoss> loss;
  double weight = 1;
  bool relative = false;  // targets are divided by the smallest one of their slate
};

// Throws what SlateLoss::evaluate throws; `name`: of the loss.
void check_slate(std::string_view name, std::span<const double> scores,
                 std::span<const double> targets, std::span<const double> gradient);

}  // namespace tpudist
