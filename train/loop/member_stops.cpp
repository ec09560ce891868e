#include "train/loop/member_stops.hpp"

#include <fmt/format.h>

#include <cmath>

#include "core/means.hpp"

namespace tpudist {
namespace {

std::string name_of_skipped(std::size_t m) {
  return fmt::format("bad_loss.skipped.{}", m);
}

}  // namespace

BadLoss::BadLoss(const BadLossConfig& config, int members)
    : config(config), skipped(static_cast<std::size_t>(members), 0) {}

StepVerdict BadLoss::judge(std::size_t m, double loss, double norm) {
  const bool good = std::isfinite(loss) && std::isfinite(norm) && loss <= config.above;
  if (good) {
    skipped[m] = 0;
    return StepVerdict::take;
  }
  if (config.policy == BadLossConfig::Policy::stop) return StepVerdict::leave;
  return ++skipped[m] > kMostSkipped ? StepVerdict::leave : StepVerdict::skip;
}

void BadLoss::save(std::map<std::string, double>& numbers) const {
  for (std::size_t m = 0; m < skipped.size(); ++m) {
    if (skipped[m] > 0) numbers[name_of_skipped(m)] = static_cast<double>(skipped[m]);
  }
}

void BadLoss::restore(const std::map<std::string, double>& numbers) {
  for (std::size_t m = 0; m < skipped.size(); ++m) {
    const auto found = numbers.find(name_of_skipped(m));
    skipped[m] = found == numbers.end() ? 0 : static_cast<std::int64_t>(found->second);
  }
}

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
