#pragma once

#include <vector>

#include "data/shards/shard_reader.hpp"

namespace tpudist {

// The violation ratio of each configuration of a layout graph, as
// `model.readout.violation_ratio: output` defines it (docs/configuration.md): the share of the
// configurable nodes in whose output a dimension that is not the largest lies along the lanes of
// the TPU, the first one of minor-to-major. 0 for a configuration of which no node counts. Empty
// where none does at all, and where the schema does not say that configurations are orders of
// dimensions. Throws DataError or IoError.
std::vector<double> output_violations(const GraphEntry& entry);

}  // namespace tpudist
