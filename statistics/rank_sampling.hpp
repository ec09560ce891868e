#pragma once

#include <cstdint>
#include <span>

namespace tpudist {

// How far Kendall's tau-b of a graph would move with other configurations of the same kind: the
// standard deviation of the delete-one-configuration jackknife (Efron and Stein, "The jackknife
// estimate of variance", Annals of Statistics 1981), all rows of a configuration at a time. `x` and
// `y` [n] as for kendall_tau_b; `config` [n] numbers equal configurations equally, empty: every row is
// one of its own. O(n log n) time. NaN where there are fewer than three configurations, or tau-b is not
// defined on all of them but one. Throws DataError on NaN and Error where lengths differ.
double tau_sampling_deviation(std::span<const double> x, std::span<const double> y,
                              std::span<const std::int32_t> config = {});

// The share of tied pairs among all pairs of rows of different configurations: what a ranking leaves
// open. tau-b does not count such pairs as wrong, so that a score with many of them is flattered.
// NaN where there is no such pair. Throws DataError on NaN and Error where lengths differ.
double tied_pair_share(std::span<const double> scores, std::span<const std::int32_t> config = {});

}  // namespace tpudist
