#pragma once

#include "models/losses/slate_loss.hpp"

namespace tpudist {

// How the values of the pairs of a slate are combined: their sum, or the sum divided by K * K, the
// size of the pair matrix, as in the 1st place's code of "Fast or Slow?".
enum class PairReduction { mean, sum };

// Which pairs of a slate count, and how much.
struct PairOptions {
  PairReduction reduction = PairReduction::mean;
  // 0: all pairs. Otherwise each configuration is compared with its partner in so many random
  // permutations of the slate, drawn from the tie key, and the mean divides by K * permutations. The
  // gradient is that of torch's margin_ranking_loss of the scores and the permuted ones; the value is
  // without the margins that ties add there.
  int permutations = 0;
  // Online hard mining (Shrivastava et al., "Training region-based object detectors with online
  // hard example mining", 2016): this share of the pairs, rounded up, those of the largest values.
  // Of equal values the first ones. The mean divides by the share that is taken of the number above.
  double hardest = 1;
  // Pairs whose faster configuration is among the `top` fastest, or as fast, weigh `top_weight`.
  int top = 0;
  double top_weight = 1;
};

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
  explicit PairwiseHinge(double margin = 1, const PairOptions& options = {});
  Value evaluate(std::span<const double> scores, std::span<const double> targets,
                 std::uint64_t tie_key, std::span<double> gradient) const override;
  bool is_translation_invariant() const override { return true; }

 private:
  double margin_;
  PairOptions options_;
};

// The logistic loss of RankNet (Burges et al., "Learning to rank using gradient descent", 2005),
// with the natural logarithm, over the same pairs:
//
//     loss = sum_{t_i > t_j} log(1 + exp(-sigma (s_i - s_j))), or this / K^2
class PairwiseLogistic : public SlateLoss {
 public:
  // `sigma` > 0, finite. Throws ConfigError.
  explicit PairwiseLogistic(double sigma = 1, const PairOptions& options = {});
  Value evaluate(std::span<const double> scores, std::span<const double> targets,
                 std::uint64_t tie_key, std::span<double> gradient) const override;
  bool is_translation_invariant() const override { return true; }

 private:
  double sigma_;
  PairOptions options_;
};

}  // namespace tpudist
