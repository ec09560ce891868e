#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>

namespace tpudist {

struct BatchLoss;

// A loss on the K scores of one slate, in double. Its calls are thread-safe.
struct SlateLoss {
  // The loss is translation-invariant at these scores if adding a constant to all of them does not
  // change it. Its gradient then sums to 0 up to rounding.
  struct Value {
    double loss = 0;
    bool translation_invariant = true;
  };
  using Evaluate = Value(std::span<const double> scores, std::span<const double> targets,
                         std::uint64_t tie_key, std::span<double> gradient);

  // Returns the loss of scores [K] against targets [K], and writes d loss / d score into `gradient`
  // [K]. A smaller target is better and should get a smaller score. `tie_key` decides the order of
  // equal targets if the loss needs one; it is a pure function of seed, member, step and slate. A
  // loss that compares configurations gives 0 and a zero gradient for K = 1. A NaN score gives a
  // NaN loss, unless nothing is compared with it. Throws DataError when a target is not finite,
  // Error when the lengths differ.
  std::function<Evaluate> evaluate;
  // Whether the loss is translation-invariant at all scores, that of the batch included.
  bool is_translation_invariant = true;
  // A loss on the scores of all slates of a batch, one after another, which adds to the losses of
  // the slates; null: none.
  std::shared_ptr<const BatchLoss> batch = nullptr;
};

// A loss on all slates of a batch at once.
struct BatchLoss {
  SlateLoss loss;
  double weight = 1;
  bool relative = false;  // targets are divided by the smallest one of their slate
};

// A loss of a name that throws what SlateLoss::evaluate says, and whose gradient is zero before
// `evaluate` writes it.
SlateLoss checked_loss(std::string name, bool is_translation_invariant,
                       std::function<SlateLoss::Evaluate> evaluate);

}  // namespace tpudist
