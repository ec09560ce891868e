#pragma once

#include <cstdint>

#include "statistics/family_variance.hpp"

namespace tpudist {

// The fewest families, with one graph each, for bootstrap_family_variance.
inline constexpr int kLeastBootstrapFamilies = 6;

// The variance of family_variance for the mean of one collection with one graph per family, but
// widened: t_interval at `level` then gives the symmetric studentised bootstrap interval (Hall,
// "The bootstrap and Edgeworth expansion", 1992, section 3.6), which allows for skewed values. Up
// to 8 graphs all samples are enumerated; beyond, 5,000 are drawn by `key`. Throws Error for fewer
// than kLeastBootstrapFamilies, or for families with several graphs.
VarianceEstimate bootstrap_family_variance(const GraphValues& graphs, double level,
                                           std::uint64_t key);

}  // namespace tpudist
