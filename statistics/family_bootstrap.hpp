#pragma once

#include <cstdint>

#include "statistics/family_variance.hpp"

namespace tpudist {

// The fewest families, of one graph each, that bootstrap_family_variance takes.
inline constexpr int kLeastBootstrapFamilies = 6;

// The variance of family_variance, of the mean of one collection whose families have one graph
// each, widened so that t_interval at `level` gives the symmetric studentised bootstrap interval
// (Hall, "The bootstrap and Edgeworth expansion", 1992, section 3.6), which allows for skewed
// values. All samples are enumerated for up to 8 graphs; beyond, 5,000 are drawn by `key`. Throws
// Error for fewer than kLeastBootstrapFamilies, or families of several graphs.
VarianceEstimate bootstrap_family_variance(const GraphValues& graphs, double level,
                                           std::uint64_t key);

}  // namespace tpudist
