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

// The Huber loss of logarithms (Huber, "Robust estimation of a location parameter", 1964). With
// e_k = s_k - log(max(unit * t_k, 1e-30)):
//
//       loss = mean_k  e^2 / 2 where |e| <= delta, else delta (|e| - delta / 2)
//
// So errors are relative to the run time, and those beyond delta count linearly.
class LogHuber : public SlateLoss {
 public:
  static constexpr double eps = 1e-30;

  // `unit` as above; `delta` > 0, finite.
  explicit LogHuber(double delta = 1, double unit = 1);
  Value evaluate(std::span<const double> scores, std::span<const double> targets,
                 std::uint64_t tie_key, std::span<double> gradient) const override;
  bool is_translation_invariant() const override { return false; }

 private:
  double delta_, unit_;
};

}  // namespace tpudist
