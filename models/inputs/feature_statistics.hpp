#pragma once

#include <vector>

namespace tpudist {

// Mean and 1 / standard deviation of every feature over a member's training graphs, or its minimum
// and 1 / (maximum - minimum) where the encoder's transform is min_max; a constant column has scale
// 0. The encoder computes (x - mean) * scale (EncoderConfig).
struct FeatureStatistics {
  std::vector<double> node_mean, node_scale;  // [node features], over the nodes of all graphs
  std::vector<double> config_mean,
      config_scale;  // [config features], over all occurrences of states
};

}  // namespace tpudist
