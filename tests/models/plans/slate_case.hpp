#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "core/random.hpp"
#include "data/schema/feature_schema.hpp"
#include "models/plans/build_plan.hpp"

namespace tpudist::test {

// One graph with its slate, as raw arrays.
struct SlateCase {
  std::int64_t nodes = 0, configs = 0, state_rows = 0;
  std::vector<std::int32_t> edges, config_nodes, states;
  std::vector<float> features;        // [nodes, node features] raw
  std::vector<std::uint8_t> opcodes;  // [nodes]
  std::vector<float> state_values;    // [state_rows, F]

  PlanSlate view() const { return {nodes, edges, config_nodes, configs, states, state_rows}; }
};

// A random graph (parallel edges, nodes without neighbours) and configurations of the graph.
// Without configurable nodes: a tile slate.
inline SlateCase random_slate(std::uint64_t key, std::int64_t nodes, std::int64_t configs,
                              std::int64_t config_nodes, int config_features,
                              int node_features = kNodeFeatures, int opcodes = kOpcodes) {
  CounterRng rng(key);
  SlateCase slate{nodes, configs, 0, {}, {}, {}, {}, {}, {}};
  for (std::int64_t e = 0; e < nodes * 3 / 2; ++e) {
    const std::int64_t producer = rng.below(nodes - 1);
    const auto consumer = static_cast<std::int32_t>(producer + 1 + rng.below(nodes - producer - 1));
    for (std::uint64_t copies = 1 + (rng.below(5) == 0); copies > 0; --copies) {
      slate.edges.insert(slate.edges.end(), {consumer, static_cast<std::int32_t>(producer)});
    }
  }
  for (std::int64_t j = 0; j < config_nodes; ++j) {
    slate.config_nodes.push_back(static_cast<std::int32_t>(j * nodes / config_nodes));
  }
  slate.state_rows = config_nodes ? 3 * config_nodes : configs;
  for (std::int64_t k = 0; k < configs; ++k) {
    for (std::int64_t j = 0; j < config_nodes; ++j) {
      slate.states.push_back(static_cast<std::int32_t>(3 * j + rng.below(3)));
    }
    if (!config_nodes) slate.states.push_back(static_cast<std::int32_t>(k));
  }
  for (std::int64_t i = 0; i < nodes * node_features; ++i) {
    slate.features.push_back(rng.below(3) ? 0 : static_cast<float>(rng.uniform(-100, 1000)));
  }
  for (std::int64_t v = 0; v < nodes; ++v)
    slate.opcodes.push_back(static_cast<std::uint8_t>(rng.below(std::max(opcodes, 1))));
  for (std::int64_t i = 0; i < slate.state_rows * config_features; ++i) {
    slate.state_values.push_back(static_cast<float>(rng.below(7)) - 1);
  }
  return slate;
}

}  // namespace tpudist::test
