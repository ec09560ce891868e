#pragma once

#include <cstdint>
#include <vector>

#include "models/inputs/graph_columns.hpp"
#include "models/inputs/unit_input.hpp"
#include "schema/feature_schema.hpp"

namespace tpudist {

// `readout.violation_ratio`: the share of a configuration's configurable nodes in whose tensor a
// dimension that is not the largest lies along the lanes of the TPU (a feature of a course paper at
// Harvard; MODELS in docs/configuration.md).
struct ViolationRatio {
  LayoutTensor tensor = LayoutTensor::output;
  // The dimension along the lanes is the first one of minor-to-major; otherwise the last one, the
  // first of major-to-minor, as the paper writes.
  bool minor_to_major = true;
  // A node whose order has no dimension, -1 at its beginning.
  enum class Unset { skip, fits, violates } unset = Unset::skip;
};

// The ratio of each configuration of a unit, [configurations]; 0 where no node counts. The plan's
// last layer must join states, and the largest dimensions (GraphColumns::largest) are the last
// column of the graphs' raw features. Throws Error for a plan that leaves out rows.
std::vector<double> violation_ratios(const ViolationRatio& ratio, const UnitInput& unit,
                                     const FeatureSchema& schema);

}  // namespace tpudist
