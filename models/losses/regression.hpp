#pragma once

#include "models/losses/slate_loss.hpp"

namespace tpudist {

// The mean absolute percentage error that the 2nd place of "Fast or Slow?" added to DiffMat, in
// torchmetrics' form. With t' = unit * t,
//
//       loss = mean_k |s_k - t'_k| / max(|t'_k|, 1.17e-6)
//
// Its gradient is 0 where s = t'. It depends on the level of the scores, not only on their
// differences.
class Mape : public SlateLoss {
 public:
  static constexpr double eps = 1.17e-6;

  // `unit` > 0, finite: factor of the targets, e.g. 1e-9 from nanoseconds to seconds. Throws
  // ConfigError.
  explicit Mape(double unit = 1);
  Value evaluate(std::span<const double> scores, std::span<const double> targets,
                 std::uint64_t tie_key, std::span<double> gradient) const override;
  bool is_translation_invariant() const override { return false; }

 private:
  double unit_;
};

// The mean squared error, mean_k (s_k - unit * t_k)^2.
class Mse : public SlateLoss {
 public:
  // `unit` as above.
  explicit Mse(double unit = 1);
  Value evaluate(std::span<const double> scores, std::span<const double> targets,
                 std::uint64_t tie_key, std::span<double> gradient) const override;
  bool is_translation_invariant() const override { return false; }

 private:
  double unit_;
};

}  // namespace tpudist
