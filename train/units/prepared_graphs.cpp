#include "train/units/prepared_graphs.hpp"

#include <utility>

namespace tpudist {

PreparedGraphs::PreparedGraphs(const Dataset& dataset, const Network& network)
    : dataset_(dataset),
      network_(network),
      kept_(std::make_unique<Kept[]>(static_cast<std::size_t>(dataset.size()))) {}

void PreparedGraphs::share(bool refined, ThreadPool& pool) {
  files_ = PreparedFiles::open(dataset_, network_, refined, pool);
}

const PreparedGraph& PreparedGraphs::of(int graph) const {
  Kept& kept = kept_[static_cast<std::size_t>(graph)];
  std::call_once(kept.prepare_once, [&] {
    PreparedArrays arrays = files_ ? files_->read(graph) : prepare_input(dataset_, network_, graph);
    kept.graph.input = network_.graph_of(arrays.input);
    kept.graph.node_class = std::move(arrays.node_class);
    kept.graph.state_class = std::move(arrays.state_class);
    kept.found = std::move(arrays.refined);
  });
  return kept.graph;
}

const RefinedGraph& PreparedGraphs::refined(int graph) const {
  Kept& kept = kept_[static_cast<std::size_t>(graph)];
  std::call_once(kept.refine_once, [&] {
    of(graph);
    if (kept.found) {
      kept.refined.emplace(*std::exchange(kept.found, std::nullopt), network_.plan_shape());
    } else {
      kept.refined.emplace(refine(graph, dataset_.graph(graph).edge_index));
    }
  });
  return *kept.refined;
}

RefinedGraph PreparedGraphs::refine(int graph, std::span<const std::int32_t> edges) const {
  return refine_graph(dataset_.graph(graph), edges, of(graph).node_class, network_.plan_shape());
}

}  // namespace tpudist
