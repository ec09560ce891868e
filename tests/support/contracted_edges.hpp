#pragma once

#include <cstdint>
#include <set>
#include <span>
#include <utility>
#include <vector>

namespace tpudist::test {

// Graph::config_edges, computed as in the code of the 14th place of "Fast or Slow?": removes the
// nodes that are not configurable one by one and joins their consumers to their producers. Sorted.
inline std::vector<std::int32_t> contracted_edges(std::int64_t nodes,
                                                  std::span<const std::int32_t> edges,
                                                  std::span<const std::int32_t> config_nodes) {
  std::set<std::pair<std::int32_t, std::int32_t>> left;
  for (std::size_t e = 0; e < edges.size(); e += 2) {
    if (edges[e] != edges[e + 1]) left.emplace(edges[e], edges[e + 1]);
  }
  std::set<std::int32_t> configurable(config_nodes.begin(), config_nodes.end());
  for (std::int32_t node = 0; node < nodes; ++node) {
    if (configurable.contains(node)) continue;
    std::vector<std::int32_t> consumers, producers;
    for (const auto& [consumer, producer] : left) {
      if (producer == node) consumers.push_back(consumer);
      if (consumer == node) producers.push_back(producer);
    }
    std::erase_if(left,
                  [&](const auto& edge) { return edge.first == node || edge.second == node; });
    for (const std::int32_t consumer : consumers) {
      for (const std::int32_t producer : producers) {
        if (consumer != producer) left.emplace(consumer, producer);
      }
    }
  }
  std::vector<std::int32_t> flat;
  for (const auto& [consumer, producer] : left) flat.insert(flat.end(), {consumer, producer});
  return flat;
}

}  // namespace tpudist::test
