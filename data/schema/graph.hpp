#pragma once

#include <cstdint>
#include <string>
#include <variant>

#include "core/array.hpp"

namespace tpudist {

// The static part of one graph: everything except its configurations. Plain data; copies share
// their arrays.
struct Graph {
  std::string name;                   // stem of the NPZ file: the graph's id
  std::int64_t nodes = 0, edges = 0;  // n, m
  Array<float> node_features;         // [n, F], row-major
  Array<std::uint8_t> opcodes;        // [n]; all 0 if the schema has none
  Array<std::int32_t> edge_index;     // [m, 2]: (consumer, producer)
  Array<std::int32_t> config_nodes;   // [nc], distinct; empty for tile
  Array<std::int64_t> node_splits;    // as in the NPZ; empty when absent
  // [p, 2]: (consumer, producer), both configurable, if a path of the whole graph joins them
  // without meeting another configurable node. Only if a network takes these edges
  // (GraphReduction::config_edges).
  Array<std::int32_t> config_edges;
  Array<std::int32_t> segment;  // [n] of data.segments; empty if graphs are not cut

  std::size_t feature_count() const {  // F
    return node_features.size() / static_cast<std::size_t>(nodes);
  }
};

// The per-node dictionaries of the config codec, for a layout graph. Node j (of config_nodes) has
// the states offsets[j] .. offsets[j+1]-1; configuration i gives it state offsets[j] + codes[i, j].
struct ConfigStates {
  Array<float> features;        // [S, C]
  Array<std::int32_t> offsets;  // [nc + 1], offsets[nc] = S
};

// Codes of some configurations, [rows, nc], in their stored width.
using ConfigCodes = std::variant<Array<std::uint8_t>, Array<std::uint16_t>>;

// The measurements of every configuration. [c] each.
struct RunTimes {
  Array<std::int64_t> runtime;     // ns; 0 in test splits
  Array<std::int64_t> normalizer;  // tile only: config_runtime_normalizers; empty for layout
  // Equal numbers mean equal configurations; numbered by first occurrence.
  Array<std::int32_t> group;

  std::int64_t configs() const { return std::ssize(runtime); }
  // The ranked quantity: nanoseconds for layout, runtime / normalizer for tile.
  double target(std::int64_t config) const {
    const double t = static_cast<double>(runtime[config]);
    return normalizer.empty() ? t : t / static_cast<double>(normalizer[config]);
  }
};

}  // namespace tpudist
