#include "train/loop/bad_loss.hpp"

#include <fmt/format.h>

#include <cmath>

namespace tpudist {
namespace {

std::string skipped_name(std::size_t m) {
  return fmt::format("bad_loss.skipped.{}", m);
}

std::string rolled_back_name(std::size_t m) {
  return fmt::format("bad_loss.rolled_back.{}", m);
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
    case BadLossPolicy::skip:
      return ++skipped[m] > kMostSkipped ? StepVerdict::leave : StepVerdict::skip;
    case BadLossPolicy::roll_back:
      if (rolled_back[m] == kMostRollBacks) return StepVerdict::leave;
      ++rolled_back[m];
      return StepVerdict::roll_back;
    case BadLossPolicy::stop:
      break;
  }
  return StepVerdict::leave;
}

double BadLoss::rate_factor(std::size_t m) const {
  return std::ldexp(1.0, -static_cast<int>(rolled_back[m]));
}

void BadLoss::save(std::map<std::string, double>& numbers) const {
  for (std::size_t m = 0; m < skipped.size(); ++m) {
    if (skipped[m] > 0) numbers[skipped_name(m)] = static_cast<double>(skipped[m]);
    if (rolled_back[m] > 0) numbers[rolled_back_name(m)] = static_cast<double>(rolled_back[m]);
  }
}

void BadLoss::restore(const std::map<std::string, double>& numbers) {
  for (std::size_t m = 0; m < skipped.size(); ++m) {
    skipped[m] = number_of(numbers, skipped_name(m));
    rolled_back[m] = number_of(numbers, rolled_back_name(m));
  }
}

}  // namespace tpudist
