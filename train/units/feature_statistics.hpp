#pragma once

#include <vector>

#include "models/inputs/feature_statistics.hpp"
#include "train/units/training_setup.hpp"

namespace tpudist {

// Measures the feature statistics of every member's training data, those that the transforms of the
// network's encoder take: the nodes of all its graphs, and the states of at most kStatisticsRows
// configurations of each graph, evenly spread over its rows; for `min_max` those of all. The same
// on every rank. Throws DataError or IoError when reading fails.
std::vector<FeatureStatistics> member_statistics(const TrainingSetup& setup);

inline constexpr std::int64_t kStatisticsRows = 256;

}  // namespace tpudist
