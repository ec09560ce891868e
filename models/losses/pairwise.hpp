#pragma once

#include "models/losses/slate_loss.hpp"

namespace tpudist {

// How the values of the pairs of a slate are combined: their sum, or the sum divided by K * K, the
// size of the pair matrix, as in the 1st place's code of "Fast or Slow?".
enum class PairReduction { mean, sum };

// The hinge of RankSVM (Joachims, "Optimizing search engines using clickthrough data", 2002) over
// all ordered pairs with different targets:
//
//       loss = sum_{t_i > t_j} max(0, margin - (s_i - s_j)), or this / K^2
//
// Pairs of equal targets add nothing, but count in K^2. If the margin is met exactly, the gradient
// is that of the sloping side, as in the 1st place's code.
class PairwiseHinge : public SlateLoss {
 public:
  // `margin` >= 0 in the unit of the scores, finite. Throws ConfigError.
  explicit PairwiseHinge(double margin = 1, PairReduction reduction = PairReduction::mean);
  Value evaluate(std::span<const double> scores, std::span<const double> targets,
                 std::uint64_t tie_key, std::span<double> gradient) const override;
  bool is_translation_invariant() const override { return true; }

 private:
  double margin_;
  PairReduction reduction_;
};

// The logistic loss of RankNet (Burges et al., "Learning to rank using gradient descent", 2005),
// with the natural logarithm, over the same pairs:
//
//     loss = sum_{t_i > t_j} log(1 + exp(-sigma (s_i - s_j))), or this / K^2
class PairwiseLogistic : public SlateLoss {
 public:
  // `sigma` > 0, finite. Throws ConfigError.
  explicit PairwiseLogistic(double sigma = 1, PairReduction reduction = PairReduction::mean);
  Value evaluate(std::span<const double> scores, std::span<const double> targets,
                 std::uint64_t tie_key, std::span<double> gradient) const override;
  bool is_translation_invariant() const override { return true; }

 private:
  double sigma_;
  PairReduction reduction_;
};

}  // namespace tpudist
