#include "train/unit_builder.hpp"

#include <map>

#include "models/graph_input.hpp"
#include "models/plan_cost.hpp"
#include "models/refined_plan.hpp"
#include "models/row_classes.hpp"

namespace tpudist {
namespace {

// A refined plan must cost this share of the dense one's arithmetic or less: its blocks are read
// and written once more.
constexpr double kRefinedPays = 0.9;

}  // namespace

UnitBuilder::UnitBuilder(const Dataset& dataset, const Network& network, PlanMode mode)
    : dataset_(dataset),
      network_(network),
      mode_(mode),
      shape_(network.plan_shape()),
      config_features_(dataset.options().collection.config_features()),
      graphs_(std::make_unique<Cached[]>(static_cast<std::size_t>(dataset.size()))) {}

const UnitBuilder::Cached& UnitBuilder::with_input(int graph) const {
  Cached& cached = graphs_[static_cast<std::size_t>(graph)];
  std::call_once(cached.input_once, [&] {
    const Graph& source = dataset_.graph(graph);
    cached.node_class = classes_of_rows(source.node_features, kNodeFeatures, source.opcodes);
    // Nodes of one class are encoded once.
    std::vector<float> features;
    std::vector<std::uint8_t> opcodes;
    for (std::size_t node = 0; node < cached.node_class.size(); ++node) {
      if (static_cast<std::size_t>(cached.node_class[node]) < opcodes.size()) continue;
      const auto row = std::span(source.node_features).subspan(node * kNodeFeatures, kNodeFeatures);
      features.insert(features.end(), row.begin(), row.end());
      opcodes.push_back(source.opcodes[node]);
    }
    cached.input = network_.prepare_graph(features, opcodes);
  });
  return cached;
}

const UnitBuilder::Cached& UnitBuilder::with_refinement(int graph) const {
  Cached& cached = graphs_[static_cast<std::size_t>(graph)];
  std::call_once(cached.refined_once, [&] {
    const Graph& source = dataset_.graph(graph);
    cached.refined = std::make_unique<const RefinedGraph>(
        source.nodes, source.edge_index, source.config_nodes, with_input(graph).node_class, shape_);
    cached.state_class = classes_of_rows(dataset_.states(graph).features, config_features_);
  });
  return cached;
}

std::int64_t UnitBuilder::state_rows(const Slate& slate) const {
  const auto& table =
      slate.local_states.empty() ? dataset_.states(slate.graph).features : slate.local_states;
  return static_cast<std::int64_t>(table.size()) / config_features_;
}

Plan UnitBuilder::dense_plan(const std::vector<Slate>& slates,
                             std::span<const std::int64_t> inputs) const {
  std::vector<PlanSlate> views;
  for (std::size_t s = 0; s < slates.size(); ++s) {
    const Graph& graph = dataset_.graph(slates[s].graph);
    const Cached& cached = with_input(slates[s].graph);
    views.push_back({graph.nodes, graph.edge_index, graph.config_nodes,
                     static_cast<std::int64_t>(slates[s].configs.size()), slates[s].states,
                     state_rows(slates[s]), cached.node_class, cached.input->nodes(), inputs[s]});
  }
  return build_dense_plan(views, shape_);
}

Plan UnitBuilder::refined_plan(const std::vector<Slate>& slates,
                               std::span<const std::int64_t> inputs) const {
  // Local state tables are classed together, so that slates of one graph can share states.
  std::vector<float> local;
  for (const Slate& slate : slates)
    local.insert(local.end(), slate.local_states.begin(), slate.local_states.end());
  const std::vector<std::int32_t> local_class = classes_of_rows(local, config_features_);
  std::vector<RefinedSlate> views;
  std::int64_t at = 0;
  for (std::size_t s = 0; s < slates.size(); ++s) {
    const Slate& slate = slates[s];
    const Cached& cached = with_refinement(slate.graph);
    RefinedSlate view{cached.refined.get(), static_cast<std::int64_t>(slate.configs.size()),
                      slate.states,         cached.state_class,
                      state_rows(slate),    inputs[s]};
    if (!slate.local_states.empty()) {
      view.state_class = std::span(local_class).subspan(at, view.state_rows);
      at += view.state_rows;
    }
    views.push_back(view);
  }
  return build_refined_plan(views);
}

Unit UnitBuilder::build(std::span<const SlateRows> slates) const {
  Unit unit;
  std::int64_t dense_rows = 0, input_rows = 0;
  std::vector<std::int64_t> inputs;  // where each slate's graph begins among the input rows
  std::map<int, std::int64_t> input_of;
  for (const SlateRows& rows : slates) {
    const Slate& slate = unit.slates.emplace_back(dataset_.slate(rows.graph, rows.rows));
    const auto& table =
        slate.local_states.empty() ? dataset_.states(slate.graph).features : slate.local_states;
    unit.input.states.insert(unit.input.states.end(), table.begin(), table.end());
    const auto [input, fresh] = input_of.emplace(slate.graph, input_rows);
    if (fresh) {
      unit.input.graphs.push_back(with_input(slate.graph).input);
      input_rows += unit.input.graphs.back()->nodes();
    }
    inputs.push_back(input->second);
    dense_rows +=
        dataset_.graph(slate.graph).nodes * static_cast<std::int64_t>(slate.configs.size());
  }
  Plan plan;
  bool refined = mode_ != PlanMode::dense;
  if (refined) plan = refined_plan(unit.slates, inputs);
  if (mode_ == PlanMode::automatic) {
    const PlanCost dense =
        dense_plan_cost(dense_rows, plan.nodes, plan.states, network_.config(), config_features_);
    refined =
        plan_cost(plan, network_.config(), config_features_).step() <= kRefinedPays * dense.step();
  }
  if (!refined) plan = dense_plan(unit.slates, inputs);
  unit.input.plan = std::make_shared<const Plan>(std::move(plan));
  return unit;
}

}  // namespace tpudist
