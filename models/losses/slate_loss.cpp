#include "models/losses/slate_loss.hpp"

#include <fmt/format.h>

#include <cmath>

#include "core/error.hpp"

namespace tpudist {

void check_slate(std::string_view name, std::span<const double> scores,
                 std::span<const double> targets, std::span<const double> gradient) {
  if (targets.size() != scores.size() || gradient.size() != scores.size()) {
    throw Error(ErrorKind::failed,
                fmt::format("{}: scores, targets and gradient differ in length", name));
  }
  for (std::size_t k = 0; k < targets.size(); ++k) {
    if (!std::isfinite(targets[k])) {
      throw DataError(
          fmt::format("{}: the run time of configuration {} of a slate is not a finite "
                      "number",
                      name, k));
    }
  }
}

}  // namespace tpudist
