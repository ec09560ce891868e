#pragma once

#include "models/losses/slate_loss.hpp"

namespace tpudist {

// The margin ranking loss over pairwise differences with which the 2nd place of "Fast or Slow?"
// trained its XLA and tile networks. With d_ij = s_j - s_i and y_ij = sign(t_j - t_i), over the
// pairs i < j:
//
//       loss = scale * mean_{i < j} max(0, margin - y_ij d_ij)
//
// which is torch.nn.functional.margin_ranking_loss of d against 0. A larger score means slower. A
// pair of equal targets has y = 0, as there: it adds scale * margin to the sum and nothing to the
// gradient. If margin = y d exactly, the gradient is that of the sloping side, as in torch.
class DiffMat : public SlateLoss {
 public:
  // `margin` >= 0 in the unit of the scores, `scale` > 0; both finite. Throws ConfigError.
  DiffMat(double margin, double scale);
  Value evaluate(std::span<const double> scores, std::span<const double> targets,
                 std::uint64_t tie_key, std::span<double> gradient) const override;
  bool is_translation_invariant() const override { return true; }

 private:
  double margin_, scale_;
};

}  // namespace tpudist
