#include "train/loop/member_stops.hpp"

#include <fmt/format.h>

#include <cmath>

#include "core/means.hpp"

namespace tpudist {
namespace {

constexpr const char *kSkipped = "bad_loss.skipped", *kRolledBack = "bad_loss.rolled_back";

std::string name_of(const char* count, std::size_t m) {
  return fmt::format("{}.{}", count, m);
}

std::int64_t number_of(const std::map<std::string, double>& numbers, const std::string& name) {
  const auto found = numbers.find(name);
  return found == numbers.end() ? 0 : static_cast<std::int64_t>(found->second);
}

}  // namespace

BadLoss::BadLoss(const BadLossConfig& config, int members)
    : config(config),
      skipped(static_cast<std::size_t>(members), 0),
      rolled_back(static_cast<std::size_t>(members), 0) {}

StepVerdict BadLoss::judge(std::size_t m, double loss, double norm) {
  const bool good = std::isfinite(loss) && std::isfinite(norm) && loss <= config.above;
  if (good) {
    skipped[m] = 0;
    return StepVerdict::take;
  }
  switch (config.policy) {
    case BadLossConfig::Policy::skip:
      return ++skipped[m] > kMostSkipped ? StepVerdict::leave : StepVerdict::skip;
    case BadLossConfig::Policy::roll_back:
      if (rolled_back[m] == kMostRollBacks) return StepVerdict::leave;
      ++rolled_back[m];
      return StepVerdict::roll_back;
    case BadLossConfig::Policy::stop:
      break;
  }
  return StepVerdict::leave;
}

double BadLoss::rate_factor(std::size_t m) const {
  return std::ldexp(1.0, -static_cast<int>(rolled_back[m]));
}

void BadLoss::save(std::map<std::string, double>& numbers) const {
  for (std::size_t m = 0; m < skipped.size(); ++m) {
    if (skipped[m] > 0) numbers[name_of(kSkipped, m)] = static_cast<double>(skipped[m]);
    if (rolled_back[m] > 0) numbers[name_of(kRolledBack, m)] = static_cast<double>(rolled_back[m]);
  }
}

void BadLoss::restore(const std::map<std::string, double>& numbers) {
  for (std::size_t m = 0; m < skipped.size(); ++m) {
    skipped[m] = number_of(numbers, name_of(kSkipped, m));
    rolled_back[m] = number_of(numbers, name_of(kRolledBack, m));
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
