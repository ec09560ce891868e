#pragma once

#include <cstdint>
#include <span>

namespace tpudist {

// The standard deviation of Kendall's tau-b of a graph over other configurations of the same kind,
// by the delete-one-configuration jackknife (Efron and Stein, "The jackknife estimate of variance",
// Annals of Statistics 1981). All rows of a configuration are deleted together. `x` and `y` [n] as
// for kendall_tau_b; `config` [n] has equal numbers for equal configurations, empty: all rows
// differ. O(n log n) time. NaN if there are fewer than three configurations, or tau-b is undefined
// without one of them. Throws DataError on NaN and Error if lengths differ.
double tau_sampling_deviation(std::span<const double> x, std::span<const double> y,
                              std::span<const std::int32_t> config = {});

// The share of pairs with tied scores among all pairs of rows of different configurations. A
// ranking leaves these pairs undecided, and tau-b does not count them as wrong, so many ties make a
// score look better. NaN if there is no pair. Throws DataError on NaN and Error if lengths differ.
double tied_pair_share(std::span<const double> scores, std::span<const std::int32_t> config = {});

}  // namespace tpudist
