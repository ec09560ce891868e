#pragma once

#include <vector>

#include "data/shards/shard_reader.hpp"

namespace tpudist {

// The violation ratio of each configuration of a layout graph, as
// `model.readout.violation_ratio: output` defines the ratio (docs/configuration.md). A configurable
// node violates if the dimension of its output along the lanes of the TPU, the first of
// minor-to-major, is not the largest. The ratio is the share of such nodes, 0 for a configuration
// in which no node counts. Empty if no node counts in any configuration, and if the schema does not
// say that configurations are orders of dimensions. Throws DataError or IoError.
std::vector<double> output_violations(const GraphEntry& entry);

}  // namespace tpudist
