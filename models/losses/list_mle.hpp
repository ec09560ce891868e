#pragma once

#include "models/losses/slate_loss.hpp"

namespace tpudist {

// ListMLE (Xia et al., "Listwise approach to learning to rank", ICML 2008) in allRank's form, which
// the 2nd place of "Fast or Slow?" used, with its clip of the prediction's norm. Let q = s /
// temperature, p = q / max(1, ||q||_2 / clip_norm), targets in descending order (the slowest
// first), and m = max p:
//
//       loss = sum_i log(sum_{j >= i} exp(p_j - m) + 1e-10) - (p_i - m)
//
// So a larger score means slower. With a low temperature, small differences of scores count as
// certain. The gradient is that of the whole formula, including the clip and the maximum.
class ListMle : public SlateLoss {
 public:
  static constexpr double eps = 1e-10;

  // `clip_norm` > 0, infinity means no clip; `temperature` > 0 and finite.
  explicit ListMle(double clip_norm, double temperature = 1);
  // Translation-invariant if the norm of these scores is not clipped.
  Value evaluate(std::span<const double> scores, std::span<const double> targets,
                 std::uint64_t tie_key, std::span<double> gradient) const override;
  bool is_translation_invariant() const override;

 private:
  double clip_norm_, temperature_;
};

}  // namespace tpudist
