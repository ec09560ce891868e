#pragma once

#include <vector>

namespace tpudist {

// Mean and 1 / standard deviation of every feature over a member's training graphs; a constant
// column has scale 0. For encoders that standardise (EncoderConfig).
struct FeatureStatistics {
  std::vector<double> node_mean, node_scale;  // [kNodeFeatures], over the nodes of all graphs
  std::vector<double> config_mean,
      config_scale;  // [config features], over all occurrences of states
};

}  // namespace tpudist
