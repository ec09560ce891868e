#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "models/plans/graph_edges.hpp"
#include "schema/feature_schema.hpp"

namespace tpudist {

// A tensor of an operation that a layout configuration orders, as its columns have them.
enum class LayoutTensor { output, input, kernel };

// Which columns the nodes of a network's graphs have behind node_feat. They depend on the edges,
// and nodes are equal only if these columns are too.
struct GraphColumns {
  int walk_steps = 0;       // return probabilities of 1 .. so many steps
  bool walk_loops = false;  // every node has an edge to itself for them
  // The largest dimensions of `tensor`, as bits: 0 where they are unknown.
  bool largest = false;
  LayoutTensor tensor = LayoutTensor::output;

  int count() const { return walk_steps + (largest ? 1 : 0); }
  // [nodes, count()]. `features` [nodes, F], `edges` [m, 2] (consumer, producer). Throws DataError
  // for a graph whose walks need more than kMostWalkWork.
  std::vector<float> of(std::int64_t nodes, std::span<const float> features,
                        std::span<const std::int32_t> edges, const FeatureSchema& schema) const;
};

// Multiplications that the walks of one graph may take: some ten seconds of one core.
inline constexpr std::int64_t kMostWalkWork = 20'000'000'000;

// The probabilities that a random walk from a node is there again after 1 .. `steps` steps, [nodes,
// steps] (PyTorch Geometric's AddRandomWalkPE on the edges of both directions). Parallel edges
// count, and so does one more edge from each node to itself with `loops`. 0 at a node without
// edges. Exact up to rounding, on the nodes within steps / 2 edges of each. Throws DataError as
// above.
std::vector<float> return_probabilities(const GraphEdges& edges, int steps, bool loops,
                                        std::int64_t most_work = kMostWalkWork);

// The dimensions of each node's tensor that no other one exceeds, as bits, [nodes]; 0: it has none,
// or it is an operand that cannot be told from others. The order of operands is not known: of
// several ones all must have the same largest dimensions.
std::vector<std::int32_t> largest_dimensions(std::span<const float> features,
                                             const GraphEdges& edges, LayoutTensor tensor,
                                             const FeatureSchema& schema);

}  // namespace tpudist
