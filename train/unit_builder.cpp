#include "train/unit_builder.hpp"

#include "models/refined_plan.hpp"
#include "models/row_classes.hpp"

namespace tpudist {
namespace {

// A refined plan must have this share of the dense one's rows or fewer: its rows have no lanes, so
// that each costs a little more.
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
    cached.input = network_.prepare_graph(source.node_features, source.opcodes);
  });
  return cached;
}

const UnitBuilder::Cached& UnitBuilder::with_refinement(int graph) const {
  Cached& cached = graphs_[static_cast<std::size_t>(graph)];
  std::call_once(cached.refined_once, [&] {
    const Graph& source = dataset_.graph(graph);
    cached.refined = std::make_unique<const RefinedGraph>(
        source.nodes, source.edge_index, source.config_nodes,
        classes_of_rows(source.node_features, kNodeFeatures, source.opcodes), shape_);
    cached.state_class = classes_of_rows(dataset_.states(graph).features, config_features_);
  });
  return cached;
}

std::int64_t UnitBuilder::state_rows(const Slate& slate) const {
  const auto& table =
      slate.local_states.empty() ? dataset_.states(slate.graph).features : slate.local_states;
  return static_cast<std::int64_t>(table.size()) / config_features_;
}

Plan UnitBuilder::dense_plan(const std::vector<Slate>& slates) const {
  std::vector<PlanSlate> views;
  for (const Slate& slate : slates) {
    const Graph& graph = dataset_.graph(slate.graph);
    views.push_back({graph.nodes, graph.edge_index, graph.config_nodes,
                     static_cast<std::int64_t>(slate.configs.size()), slate.states,
                     state_rows(slate)});
  }
  return build_dense_plan(views, shape_);
}

Plan UnitBuilder::refined_plan(const std::vector<Slate>& slates) const {
  // Local state tables are classed together, so that slates of one graph can share states.
  std::vector<float> local;
  for (const Slate& slate : slates)
    local.insert(local.end(), slate.local_states.begin(), slate.local_states.end());
  const std::vector<std::int32_t> local_class = classes_of_rows(local, config_features_);
  std::vector<RefinedSlate> views;
  std::int64_t at = 0;
  for (const Slate& slate : slates) {
    const Cached& cached = with_refinement(slate.graph);
    RefinedSlate view{cached.refined.get(), static_cast<std::int64_t>(slate.configs.size()),
                      slate.states, cached.state_class, state_rows(slate)};
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
  std::int64_t dense_rows = 0;
  for (const SlateRows& rows : slates) {
    const Slate& slate = unit.slates.emplace_back(dataset_.slate(rows.graph, rows.rows));
    const auto& table =
        slate.local_states.empty() ? dataset_.states(slate.graph).features : slate.local_states;
    unit.input.states.insert(unit.input.states.end(), table.begin(), table.end());
    unit.input.graphs.push_back(with_input(slate.graph).input);
    dense_rows += dataset_.graph(slate.graph).nodes *
                  static_cast<std::int64_t>(slate.configs.size()) *
                  static_cast<std::int64_t>(shape_.layers.size() + 1);
  }
  Plan plan;
  bool refined = mode_ != PlanMode::dense;
  if (refined) plan = refined_plan(unit.slates);
  if (mode_ == PlanMode::automatic) {
    refined =
        static_cast<double>(plan.total_rows()) <= kRefinedPays * static_cast<double>(dense_rows);
  }
  if (!refined) plan = dense_plan(unit.slates);
  unit.input.plan = std::make_shared<const Plan>(std::move(plan));
  return unit;
}

}  // namespace tpudist
