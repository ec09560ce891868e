#include "models/plans/graph_edges.hpp"

#include <algorithm>
#include <numeric>
#include <utility>

namespace tpudist {
namespace {

// Neighbour lists of the nodes at one end of the edges: `to` = 1 for producers, 0 for consumers.
Adjacency make_adjacency(std::int64_t nodes, std::span<const std::int32_t> edges, int to) {
  std::vector<std::int64_t> begin(nodes + 1, 0);
  for (std::size_t e = 0; e < edges.size(); e += 2) ++begin[edges[e + to] + 1];
  std::partial_sum(begin.begin(), begin.end(), begin.begin());
  std::vector<std::int32_t> source(edges.size() / 2);
  std::vector<std::int64_t> next(begin.begin(), begin.end() - 1);
  for (std::size_t e = 0; e < edges.size(); e += 2)
    source[next[edges[e + to]]++] = edges[e + 1 - to];
  for (std::int64_t node = 0; node < nodes; ++node)
    std::sort(source.begin() + begin[node], source.begin() + begin[node + 1]);
  return {std::move(begin), std::move(source)};
}

}  // namespace

GraphEdges::GraphEdges(std::int64_t nodes, std::span<const std::int32_t> edges,
                       std::span<const std::int32_t> config_edges)
    : NeighbourLists{make_adjacency(nodes, edges, 1), make_adjacency(nodes, edges, 0)},
      nodes(nodes),
      config{make_adjacency(nodes, config_edges, 1), make_adjacency(nodes, config_edges, 0)} {}

std::vector<std::vector<std::int32_t>> reached_nodes(const GraphEdges& edges,
                                                     std::span<const std::int32_t> config_nodes,
                                                     const PlanShape& shape) {
  std::vector<std::vector<std::int32_t>> layers;
  std::vector<char> reached(edges.nodes, 0);
  const auto join = [&](std::vector<char>& nodes) {
    if (config_nodes.empty()) std::ranges::fill(nodes, 1);
    for (const std::int32_t node : config_nodes) nodes[node] = 1;
  };
  if (shape.early_join) join(reached);
  const auto record = [&] {
    std::vector<std::int32_t>& nodes = layers.emplace_back();
    for (std::int64_t node = 0; node < edges.nodes; ++node) {
      if (reached[node]) nodes.push_back(static_cast<std::int32_t>(node));
    }
  };
  record();
  for (const LayerShape& layer : shape.layers) {
    std::vector<char> next = reached;
    if (layer.joins_states) join(next);
    for (const EdgeKind kind : layer.edge_kinds) {
      if (kind == EdgeKind::nodes && std::ranges::count(reached, 1) > 0) std::ranges::fill(next, 1);
      for (std::int64_t node = 0; along_graph(kind) && node < edges.nodes; ++node) {
        const auto sources = edges.of(kind).of(static_cast<std::int32_t>(node));
        if (std::any_of(sources.begin(), sources.end(),
                        [&](std::int32_t s) { return reached[s]; })) {
          next[node] = 1;
        }
      }
    }
    reached = std::move(next);
    record();
  }
  return layers;
}

std::vector<std::int32_t> needed_levels(const GraphEdges& edges,
                                        std::span<const std::int32_t> reached,
                                        const PlanShape& shape) {
  const auto depth = static_cast<std::int32_t>(shape.layers.size());
  std::vector<std::int32_t> level(edges.nodes, -1);
  for (const std::int32_t node : reached) level[node] = depth;
  for (std::int32_t layer = depth - 1; layer >= 0; --layer) {
    for (const EdgeKind kind : shape.layers[layer].edge_kinds) {
      if (kind == EdgeKind::nodes &&
          std::ranges::any_of(level, [&](std::int32_t l) { return l > layer; })) {
        for (std::int32_t& l : level) l = std::max(l, layer);
      }
      for (std::int64_t node = 0; along_graph(kind) && node < edges.nodes; ++node) {
        if (level[node] <= layer) continue;
        for (const std::int32_t source : edges.of(kind).of(static_cast<std::int32_t>(node))) {
          level[source] = std::max(level[source], layer);
        }
      }
    }
  }
  return level;
}

}  // namespace tpudist
