#pragma once

#include <string>
#include <vector>

#include "core/config/config.hpp"
#include "models/plans/plan.hpp"
#include "models/plans/plan_shape.hpp"

namespace tpudist {

// Reads `directions`, the edges along which a layer aggregates. `some`: there must be one.
std::vector<EdgeKind> read_directions(ConfigNode block, bool some = false,
                                      const std::vector<std::string>& fallback = {
                                          "consumer_to_producer"});

// Their text in a layer's description, e.g. " from consumers from producers".
std::string direction_text(const std::vector<EdgeKind>& directions);

// The number of neighbours of each row after the layer along one of its edge sets; parallel edges
// count.
std::vector<double> neighbour_counts(const PlanLayer& step, const EdgeSet& edges);

}  // namespace tpudist
