#include "models/losses/slate_loss.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "core/error.hpp"

namespace tpudist {

SlateLoss checked_loss(std::string name, bool is_translation_invariant,
                       std::function<SlateLoss::Evaluate> evaluate) {
  const auto checked = [name = std::move(name), evaluate = std::move(evaluate)](
                           std::span<const double> scores, std::span<const double> targets,
                           std::uint64_t tie_key, std::span<double> gradient) {
    if (targets.size() != scores.size() || gradient.size() != scores.size()) {
      throw Error(ErrorKind::failed,
                  fmt::format("{}: scores, targets and gradient differ in length", name));
    }
    for (std::size_t k = 0; k < targets.size(); ++k) {
      if (std::isfinite(targets[k])) continue;
      throw DataError(fmt::format(
          "{}: the run time of configuration {} of a slate is not a finite number", name, k));
    }
    std::ranges::fill(gradient, 0.0);
    return evaluate(scores, targets, tie_key, gradient);
  };
  return {checked, is_translation_invariant};
}

}  // namespace tpudist
