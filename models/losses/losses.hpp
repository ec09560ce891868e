#pragma once

#include <memory>

#include "core/config/config.hpp"
#include "models/losses/slate_loss.hpp"

namespace tpudist {

// The targets: run times in nanoseconds (layouts), or run times divided by the normalizer of their
// configuration (tiles).
enum class TargetKind { nanoseconds, normalised };

// Reads `loss:`, a map of weighted terms, e.g. {list_mle: {weight: 1, clip_norm: 500}}, as their
// weighted sum. Throws ConfigError, together with the other mistakes of the document, when there is
// no term or a value is out of range.
std::unique_ptr<SlateLoss> read_loss(ConfigNode loss, TargetKind targets = TargetKind::nanoseconds);

// ListMLE (Xia et al., "Listwise approach to learning to rank", ICML 2008) in allRank's form, which
// the 2nd place of "Fast or Slow?" used, with its clip of the prediction's norm. Let q = s /
// temperature, p = q / max(1, ||q||_2 / clip_norm), targets in descending order (the slowest
// first), and m = max p:
//
//       loss = sum_i log(sum_{j >= i} exp(p_j - m) + 1e-10) - (p_i - m)
//
// So a larger score means slower. With a low temperature, small differences of scores count as
// certain. The gradient is that of the whole formula, including the clip and the maximum.
// `clip_norm` > 0, infinity means no clip; `temperature` > 0 and finite. Translation-invariant at
// scores whose norm is not clipped.
SlateLoss list_mle(double clip_norm, double temperature = 1);

// The margin ranking loss over pairwise differences with which the 2nd place of "Fast or Slow?"
// trained its XLA and tile networks. With d_ij = s_j - s_i and y_ij = sign(t_j - t_i), over the
// pairs i < j:
//
//       loss = scale * mean_{i < j} max(0, margin - y_ij d_ij)
//
// which is torch.nn.functional.margin_ranking_loss of d against 0. A larger score means slower. A
// pair of equal targets has y = 0, as there: it adds scale * margin to the sum and nothing to the
// gradient. If margin = y d exactly, the gradient is that of the sloping side, as in torch.
// `margin` >= 0 in the unit of the scores, `scale` > 0; both finite.
SlateLoss diff_mat(double margin, double scale);

// Which pairs of a slate count, how much, and how their values are combined.
struct PairOptions {
  // The values of the pairs are added up. Otherwise the sum is divided by K * K, the size of the
  // pair matrix, as in the 1st place's code of "Fast or Slow?".
  bool sum = false;
  // 0: all pairs. Otherwise each configuration is compared with its partner in this many random
  // permutations of the slate, drawn from the tie key; the mean divides by K * permutations. The
  // gradient is that of torch's margin_ranking_loss of scores and permuted scores. The value lacks
  // the margins that ties add there.
  int permutations = 0;
  // Online hard mining (Shrivastava et al., "Training region-based object detectors with online
  // hard example mining", 2016): only this share of the pairs counts, rounded up: the largest
  // values; of equal values the first. The mean's divisor shrinks by the share that is taken.
  double hardest = 1;
  // Pairs weigh `top_weight` if their faster configuration is as fast as one of the `top` fastest.
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
// `margin` >= 0 in the unit of the scores, finite.
SlateLoss pairwise_hinge(double margin = 1, const PairOptions& options = {});

// The logistic loss of RankNet (Burges et al., "Learning to rank using gradient descent", 2005),
// with the natural logarithm, over the same pairs:
//
//     loss = sum_{t_i > t_j} log(1 + exp(-sigma (s_i - s_j))), or this / K^2
// `sigma` > 0, finite.
SlateLoss pairwise_logistic(double sigma = 1, const PairOptions& options = {});

// The mean absolute percentage error that the 2nd place of "Fast or Slow?" added to DiffMat, in
// torchmetrics' form. With t' = unit * t,
//
//       loss = mean_k |s_k - t'_k| / max(|t'_k|, 1.17e-6)
//
// Its gradient is 0 where s = t'. It depends on the level of the scores, not only on their
// differences.
// `unit` > 0, finite: factor of the targets, e.g. 1e-9 from nanoseconds to seconds.
SlateLoss mape(double unit = 1);

// The mean squared error, mean_k (s_k - unit * t_k)^2. `unit` as above.
SlateLoss mse(double unit = 1);

}  // namespace tpudist
