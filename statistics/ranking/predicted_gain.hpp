#pragma once

#include <cstddef>
#include <span>

#include "core/means.hpp"
#include "statistics/intervals/interval.hpp"
#include "statistics/ranking/combination.hpp"

namespace tpudist {

// By how much do the members of an ensemble put a configuration before the default one? In standard
// deviations of a member's scores on the list (z-scores).
struct PredictedGain {
  double mean = 0;           // over members: z of the default - z of the configuration; > 0: faster
  double deviation = kNone;  // sample standard deviation over members; NaN for a single member
  int faster = 0;            // members that call the configuration faster than the default
};

// Both [M], MemberSpread::z_scores. At least one member.
PredictedGain predicted_gain(std::span<const double> standard, std::span<const double> config);

// Does the ensemble know a configuration that is better than the default? The best of many is put
// before the default even by members that know nothing. So each member judges the configuration that
// the others together put first, which it did not help to choose. Together is the mean of z-scores,
// also where another rule combines the members (--combine).
struct KnownGain {
  // 95 % interval (mean_interval) of these members' gains. With one member all is NaN.
  Interval interval{.value = kNone, .error = 0, .degrees = 0, .low = kNone, .high = kNone};
  double deviation = kNone;  // of the gains over members

  // The interval lies above 0, and the mean gain exceeds the members' deviation. For members whose
  // scores are noise this holds in at most 6 % of lists, for 2 to 25 members and 18 to 1,000
  // configurations (docs/statistics.md); "the mean gain of the best exceeds its deviation" would
  // hold in up to 85 %. It cannot see errors that members share.
  bool is_better() const;
};

// `gains` [M], each of a member that did not help to choose the configuration. Nothing is known of
// fewer than two.
KnownGain known_gain(std::span<const double> gains);
// `list` [c] are all distinct configurations that were compared, `standard` is the default's index.
KnownGain known_gain(std::span<const MemberSpread> list, std::size_t standard);

}  // namespace tpudist
