#include "models/inputs/encoder_config.hpp"

#include <algorithm>
#include <string>

#include "core/error.hpp"
#include "data/schema/lanes.hpp"

namespace tpudist {
namespace {

// The steps of a walk from each node: its neighbours along edges of both directions, and the number
// of edges to each.
struct WalkEdges {
  WalkEdges(const GraphEdges& edges, bool loops) {
    std::vector<std::int32_t> all;
    for (std::int32_t node = 0; node < edges.nodes; ++node) {
      all.clear();
      if (loops) all.push_back(node);
      for (const Adjacency* side : {&edges.to_producer, &edges.to_consumer}) {
        const auto some = side->of(node);
        all.insert(all.end(), some.begin(), some.end());
      }
      std::ranges::sort(all);
      for (std::size_t i = 0; i < all.size(); ++i) {
        if (i > 0 && all[i] == all[i - 1]) {
          ++count.back();
        } else {
          target.push_back(all[i]);
          count.push_back(1);
        }
      }
      begin.push_back(static_cast<std::int64_t>(target.size()));
      degree.push_back(static_cast<double>(all.size()));
    }
  }
  std::vector<std::int64_t> begin{0};  // [nodes + 1] into the next two
  std::vector<std::int32_t> target;
  std::vector<double> count;
  std::vector<double> degree;  // [nodes]
};

// The distribution of a walk over the nodes after some steps: dense, with a list of the nodes whose
// probability is not 0.
struct Places {
  explicit Places(std::int64_t nodes) : probability(static_cast<std::size_t>(nodes)) {}
  void add(std::int32_t node, double value) {
    if (probability[node] == 0) list.push_back(node);
    probability[node] += value;
  }
  void clear() {
    for (const std::int32_t node : list) probability[node] = 0;
    list.clear();
  }
  std::vector<double> probability;  // [nodes]
  std::vector<std::int32_t> list;
};

}  // namespace

// A walk along edges of both directions is reversible: from j to i it is degree(i) / degree(j)
// times as probable as from i to j. So walks of half the length suffice: after a + b steps a walk
// is back at i with probability sum over j of p_a(j) p_b(j) degree(i) / degree(j).
std::vector<float> return_probabilities(const GraphEdges& edges, int steps, bool loops,
                                        std::int64_t most_work) {
  const WalkEdges walk(edges, loops);
  std::vector<float> all(static_cast<std::size_t>(edges.nodes * steps));
  Places now(edges.nodes), next(edges.nodes);
  std::int64_t work = 0;
  for (std::int32_t home = 0; home < edges.nodes; ++home) {
    if (walk.degree[home] == 0) continue;
    float* const row = all.data() + home * steps;
    const auto meet = [&](const Places& a, const Places& b) {
      double sum = 0;
      for (const std::int32_t node : a.list)
        sum += a.probability[node] * b.probability[node] / walk.degree[node];
      return static_cast<float>(sum * walk.degree[home]);
    };
    now.clear();
    now.add(home, 1);
    for (int length = 1; length <= steps; length += 2) {
      next.clear();
      for (const std::int32_t node : now.list) {
        const double share = now.probability[node] / walk.degree[node];
        work += walk.begin[node + 1] - walk.begin[node];
        for (std::int64_t e = walk.begin[node]; e < walk.begin[node + 1]; ++e)
          next.add(walk.target[e], share * walk.count[e]);
      }
      if (work > most_work) {
        throw DataError(
            "random walks of " + std::to_string(steps) + " steps on a graph of " +
            std::to_string(edges.nodes) +
            " nodes take too long: lower model.encoder.random_walk, or set data.reduce");
      }
      row[length - 1] = meet(now, next);
      if (length < steps) row[length] = meet(next, next);
      std::swap(now, next);
    }
  }
  return all;
}

std::vector<std::int32_t> largest_dimensions(std::span<const float> features,
                                             const GraphEdges& edges, LayoutTensor tensor,
                                             const FeatureSchema& schema) {
  std::vector<std::int32_t> own(static_cast<std::size_t>(edges.nodes));
  for (std::size_t node = 0; node < own.size(); ++node) {
    own[node] = largest_dimensions(
        features.subspan(node * static_cast<std::size_t>(schema.node_features) +
                             static_cast<std::size_t>(schema.dimension_columns.first),
                         static_cast<std::size_t>(schema.dimension_columns.count)));
  }
  if (tensor == LayoutTensor::output) return own;
  std::vector<std::int32_t> of_operands(own.size());
  const std::size_t least = tensor == LayoutTensor::kernel ? 2 : 1;
  for (std::int32_t node = 0; node < edges.nodes; ++node) {
    const auto operands = edges.to_consumer.of(node);
    if (operands.size() < least) continue;
    const std::int32_t first = own[operands[0]];
    if (std::ranges::all_of(operands, [&](std::int32_t other) { return own[other] == first; }))
      of_operands[node] = first;
  }
  return of_operands;
}

std::vector<float> GraphColumns::of(std::int64_t nodes, std::span<const float> features,
                                    std::span<const std::int32_t> edges,
                                    const FeatureSchema& schema) const {
  const GraphEdges lists(nodes, edges);
  std::vector<float> walks;
  if (walk_steps > 0) walks = return_probabilities(lists, walk_steps, walk_loops);
  std::vector<std::int32_t> bits;
  if (largest) bits = largest_dimensions(features, lists, tensor, schema);
  std::vector<float> rows;
  for (std::int64_t node = 0; node < nodes; ++node) {
    rows.insert(rows.end(), walks.begin() + node * walk_steps,
                walks.begin() + (node + 1) * walk_steps);
    if (largest) rows.push_back(static_cast<float>(bits[static_cast<std::size_t>(node)]));
  }
  return rows;
}

}  // namespace tpudist
