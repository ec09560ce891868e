#include "train/loop/early_stop.hpp"

#include <cmath>

#include "core/means.hpp"

namespace tpudist {

EarlyStop::EarlyStop(const EarlyStopConfig& config, int members)
    : config(config),
      best(static_cast<std::size_t>(members), kNone),
      waited(best.size(), 0),
      stopped_at(best.size(), -1) {}

void EarlyStop::take(std::span<const double> scores, const std::vector<bool>& active,
                     std::int64_t step) {
  if (config.patience == 0) return;
  for (std::size_t m = 0; m < best.size(); ++m) {
    if (!active[m]) continue;
    const bool better = std::isfinite(scores[m]) && !(scores[m] <= best[m] + config.min_delta);
    if (better) {
      best[m] = scores[m];
      waited[m] = 0;
    } else if (++waited[m] >= config.patience) {
      stopped_at[m] = step;
    }
  }
}

}  // namespace tpudist
