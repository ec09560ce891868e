#include "train/units/prepared_arrays.hpp"

#include <vector>

#include "models/plans/row_classes.hpp"

namespace tpudist {

std::uint64_t PreparedArrays::bytes() const {
  std::uint64_t bytes = 0;
  for_each(*this, [&](const auto& values) { bytes += values.bytes(); });
  return bytes;
}

PreparedArrays prepare_input(const Dataset& dataset, const Network& network, int graph) {
  const Graph& source = dataset.graph(graph);
  PreparedArrays prepared;
  prepared.node_class = classes_of_rows(source.node_features, kNodeFeatures, source.opcodes);
  // Nodes of one class are encoded once.
  std::vector<float> features;
  std::vector<std::uint8_t> opcodes;
  for (std::size_t node = 0; node < prepared.node_class.size(); ++node) {
    if (static_cast<std::size_t>(prepared.node_class[node]) < opcodes.size()) continue;
    const auto row = std::span(source.node_features).subspan(node * kNodeFeatures, kNodeFeatures);
    features.insert(features.end(), row.begin(), row.end());
    opcodes.push_back(source.opcodes[node]);
  }
  prepared.input = network.graph_arrays(features, opcodes);
  prepared.state_class = classes_of_rows(dataset.states(graph).features, network.config_features());
  return prepared;
}

RefinedGraph refine_graph(const Graph& graph, std::span<const std::int32_t> edges,
                          const Array<std::int32_t>& node_class, const PlanShape& shape) {
  return {graph.nodes, edges, graph.config_nodes, node_class, shape};
}

}  // namespace tpudist
