#include "data/loading/graph_reduction.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "core/error.hpp"

namespace tpudist {
namespace {

using Flags = std::vector<char>;  // [nodes]

Flags configurable_nodes(const Graph& graph) {
  Flags flags(static_cast<std::size_t>(graph.nodes), 0);
  for (const std::int32_t node : graph.config_nodes) flags[static_cast<std::size_t>(node)] = 1;
  return flags;
}

// The configurable nodes and those reached from them. Each hop passes over all edges.
Flags kept_nodes(const Graph& graph, const Flags& configurable, const GraphReduction& reduction) {
  Flags kept = configurable;
  for (int hop = 0; hop < reduction.hops; ++hop) {
    const Flags before = kept;
    for (std::size_t e = 0; e < graph.edge_index.size(); e += 2) {
      const auto consumer = static_cast<std::size_t>(graph.edge_index[e]);
      const auto producer = static_cast<std::size_t>(graph.edge_index[e + 1]);
      if (before[consumer] && reduction.direction != ReachDirection::to_consumer)
        kept[producer] = 1;
      if (before[producer] && reduction.direction != ReachDirection::to_producer)
        kept[consumer] = 1;
    }
    if (kept == before) break;
  }
  return kept;
}

}  // namespace

std::string to_text(const GraphReduction& reduction) {
  if (!reduction.wanted) return "none";
  const char* direction = reduction.direction == ReachDirection::both          ? "both ways"
                          : reduction.direction == ReachDirection::to_producer ? "to_producer"
                                                                               : "to_consumer";
  return fmt::format("config_neighbours, {} hop{} {}, edges {}", reduction.hops,
                     reduction.hops == 1 ? "" : "s", direction,
                     reduction.edges == KeptEdges::all ? "all" : "touching_config");
}

Graph reduced_graph(const Graph& graph, const GraphReduction& reduction) {
  if (!reduction.wanted) return graph;
  if (graph.config_nodes.empty()) {
    throw DataError(fmt::format(
        "{}: has no configurable node, so data.reduce would leave nothing of it: exclude the graph "
        "(data.exclude), or leave out data.reduce",
        graph.name));
  }
  const Flags configurable = configurable_nodes(graph);
  const Flags kept = kept_nodes(graph, configurable, reduction);

  const std::size_t width = graph.feature_count();
  Graph reduced;
  reduced.name = graph.name;
  std::vector<float> features;
  std::vector<std::uint8_t> opcodes;
  std::vector<std::int32_t> edges, config_nodes;
  std::vector<std::int32_t> number(kept.size(), -1);  // of a kept node, among those
  for (std::size_t node = 0; node < kept.size(); ++node) {
    if (!kept[node]) continue;
    number[node] = static_cast<std::int32_t>(reduced.nodes++);
    const auto row = graph.node_features.begin() + node * width;
    features.insert(features.end(), row, row + width);
    opcodes.push_back(graph.opcodes[node]);
  }
  for (std::size_t e = 0; e < graph.edge_index.size(); e += 2) {
    const auto consumer = static_cast<std::size_t>(graph.edge_index[e]);
    const auto producer = static_cast<std::size_t>(graph.edge_index[e + 1]);
    if (!kept[consumer] || !kept[producer]) continue;
    if (reduction.edges == KeptEdges::touching_config && !configurable[consumer] &&
        !configurable[producer])
      continue;
    edges.push_back(number[consumer]);
    edges.push_back(number[producer]);
  }
  reduced.edges = static_cast<std::int64_t>(edges.size() / 2);
  for (const std::int32_t node : graph.config_nodes)
    config_nodes.push_back(number[static_cast<std::size_t>(node)]);
  reduced.node_features = std::move(features);
  reduced.opcodes = std::move(opcodes);
  reduced.edge_index = std::move(edges);
  reduced.config_nodes = std::move(config_nodes);
  return reduced;
}

}  // namespace tpudist
