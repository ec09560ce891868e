#pragma once

#include <cstdint>
#include <functional>
#include <span>

namespace tpudist {

// Ranking metrics of one graph. `score` is predicted and `target` measured; both are lower for
// faster configurations, equally long and in the same order. All metrics are exact up to the last
// division (64-bit counts). They throw DataError on NaN and Error if lengths differ.

// Kendall's tau-b between two rankings with ties, equal to scipy.stats.kendalltau. O(n log n)
// (Knight, "A computer method for calculating Kendall's tau with ungrouped data", JASA 1966). NaN
// when either side is constant or has fewer than 2 values.
double kendall_tau_b(std::span<const double> x, std::span<const double> y);

// Ordered pair accuracy (Phothilimthana et al., "TpuGraphs", 2023): among the pairs with target_i >
// target_j, the share with score_i > score_j; tied scores count as wrong. O(n log n). NaN when all
// targets are equal.
double ordered_pair_accuracy(std::span<const double> score, std::span<const double> target);

// (best target among the k lowest scores) / (best target) - 1; 0 is perfect. Tied scores are
// ordered by index; k > n takes all. NaN if there is no value or the best target is not positive
// (unmeasured test splits). Throws Error for k < 1.
double slowdown_at(std::span<const double> score, std::span<const double> target, std::int64_t k);

// 2 - (best target among the 5 lowest scores) / (best target): the competition's score of a tile
// kernel; 1 is perfect. NaN as for slowdown_at.
double tile_score(std::span<const double> score, std::span<const double> target);

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

// Calls visit(rows) for the rows of each configuration (ascending, as are the rows of each). `config`
// [n] has equal numbers, of any value, for equal configurations.
void each_config(std::span<const std::int32_t> config,
                 const std::function<void(std::span<const std::size_t>)>& visit);

}  // namespace tpudist
