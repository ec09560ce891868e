#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "core/array.hpp"
#include "data/loading/dataset.hpp"
#include "models/inputs/graph_input.hpp"
#include "models/network.hpp"
#include "models/plans/refined_graph.hpp"

namespace tpudist {

// Values computed once per graph for all units.
struct PreparedArrays {
  Array<std::int32_t> node_class;        // [n] equal for nodes of equal features and opcode: the
                                         // row of the input
  Array<std::int32_t> state_class;       // [states] of the graph's own state table
  GraphArrays input;                     // of the first node of each class
  std::optional<RefinedArrays> refined;  // with all edges; only if refined plans are wanted

  std::uint64_t bytes() const;

  // Calls body(array) for each array in a fixed order; P is PreparedArrays, const or not.
  template <typename P, typename Body>
  static void for_each(P& graph, Body&& body) {
    body(graph.node_class);
    body(graph.state_class);
    GraphArrays::for_each(graph.input, body);
    if (graph.refined) RefinedArrays::for_each(*graph.refined, body);
  }
};

// Everything except `refined`. Throws DataError if the network cannot use the graph.
PreparedArrays prepare_input(const Dataset& dataset, const Network& network, int graph);

// The graph with these edges, [m, 2] (consumer, producer), refined for networks of this shape.
// `node_class` as in PreparedArrays.
RefinedGraph refine_graph(const Graph& graph, std::span<const std::int32_t> edges,
                          const Array<std::int32_t>& node_class, const PlanShape& shape);

}  // namespace tpudist
