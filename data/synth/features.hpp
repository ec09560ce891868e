#pragma once

#include <span>
#include <string>

#include "data/schema/collection.hpp"
#include "data/schema/graph.hpp"
#include "data/synth/program.hpp"

namespace tpudist::synth {

// The 140 columns of node_feat for one operation, by write_node_features.
void node_features(const Op& op, bool is_root, std::span<float, kNodeFeatures> row);

// The graph as a reader of the NPZ file sees it. `with_config` lists the configurable nodes (layout
// collections); tile graphs have none.
Graph to_graph(const Program& program, const std::string& name, bool with_config);

}  // namespace tpudist::synth
