#include "train/unit_builder.hpp"

namespace tpudist {
namespace {

PlanSlate view_of(const Graph& graph, const ConfigStates& states, const Slate& slate,
                  int config_features) {
  PlanSlate view;
  view.nodes = graph.nodes;
  view.edges = graph.edge_index;
  view.config_nodes = graph.config_nodes;
  view.configs = static_cast<std::int64_t>(slate.configs.size());
  view.states = slate.states;
  const std::vector<float>& table =
      slate.local_states.empty() ? states.features : slate.local_states;
  view.state_rows = static_cast<std::int64_t>(table.size()) / config_features;
  return view;
}

}  // namespace

UnitBuilder::UnitBuilder(const Dataset& dataset, const Network& network)
    : dataset_(dataset),
      network_(network),
      shape_(network.plan_shape()),
      graphs_(std::make_unique<Cached[]>(static_cast<std::size_t>(dataset.size()))) {}

std::shared_ptr<const GraphInput> UnitBuilder::graph_input(int graph) const {
  Cached& cached = graphs_[static_cast<std::size_t>(graph)];
  std::call_once(cached.once, [&] {
    const Graph& source = dataset_.graph(graph);
    cached.input = network_.prepare_graph(source.node_features, source.opcodes);
  });
  return cached.input;
}

Unit UnitBuilder::build(std::span<const SlateRows> slates) const {
  const int config_features = dataset_.options().collection.config_features();
  Unit unit;
  std::vector<PlanSlate> views;
  for (const SlateRows& rows : slates) unit.slates.push_back(dataset_.slate(rows.graph, rows.rows));
  for (const Slate& slate : unit.slates) {
    const ConfigStates& states = dataset_.states(slate.graph);
    views.push_back(view_of(dataset_.graph(slate.graph), states, slate, config_features));
    const std::vector<float>& table =
        slate.local_states.empty() ? states.features : slate.local_states;
    unit.input.states.insert(unit.input.states.end(), table.begin(), table.end());
    unit.input.graphs.push_back(graph_input(slate.graph));
  }
  unit.input.plan = std::make_shared<const Plan>(build_dense_plan(views, shape_));
  return unit;
}

}  // namespace tpudist
