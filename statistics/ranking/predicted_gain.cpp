#include "statistics/ranking/predicted_gain.hpp"

#include <cmath>
#include <vector>

namespace tpudist {

PredictedGain predicted_gain(std::span<const double> standard, std::span<const double> config) {
  PredictedGain gain;
  std::vector<double> gains;
  for (std::size_t m = 0; m < standard.size(); ++m) {
    gains.push_back(standard[m] - config[m]);
    gain.faster += gains.back() > 0;
  }
  gain.mean = mean(gains);
  if (gains.size() > 1) gain.deviation = std::sqrt(sample_variance(gains));
  return gain;
}

bool KnownGain::is_better() const {
  return interval.is_known() && interval.low > 0 && interval.value > deviation;
}

KnownGain known_gain(std::span<const double> gains) {
  KnownGain known;
  if (gains.size() < 2) return known;
  known.interval = mean_interval(gains);
  known.deviation = std::sqrt(sample_variance(gains));
  return known;
}

KnownGain known_gain(std::span<const MemberSpread> list, std::size_t standard) {
  const std::size_t members = list.front().z_scores.size();
  std::vector<double> sums;  // [c] over members
  for (const MemberSpread& config : list)
    sums.push_back(mean(config.z_scores) * static_cast<double>(members));
  std::vector<double> gains;
  for (std::size_t m = 0; m < members; ++m) {
    std::size_t best = 0;
    const auto of_others = [&](std::size_t k) { return sums[k] - list[k].z_scores[m]; };
    for (std::size_t k = 1; k < list.size(); ++k) {
      if (of_others(k) < of_others(best)) best = k;
    }
    gains.push_back(list[standard].z_scores[m] - list[best].z_scores[m]);
  }
  return known_gain(gains);
}

}  // namespace tpudist
