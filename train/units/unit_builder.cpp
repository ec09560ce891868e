#include "train/units/unit_builder.hpp"

#include <algorithm>
#include <chrono>
#include <map>
#include <optional>
#include <set>

#include "core/duration.hpp"
#include "models/inputs/graph_input.hpp"
#include "models/plans/dense_plan.hpp"
#include "models/plans/refined_plan.hpp"
#include "models/plans/row_classes.hpp"

namespace tpudist {
namespace {

// A refined plan must need at most this share of the dense one's arithmetic, since its blocks are
// read and written once more.
constexpr double kRefinedPays = 0.9;

// The part of a slate with its first configuration and those from `begin` to `end` - 1.
Slate first_and(const Slate& slate, std::size_t begin, std::size_t end) {
  const auto part = [&](const auto& values) {
    const std::size_t width = values.size() / slate.configs.size();
    std::remove_cvref_t<decltype(values)> taken(values.begin(), values.begin() + width);
    taken.insert(taken.end(), values.begin() + begin * width, values.begin() + end * width);
    return taken;
  };
  Slate taken = slate;
  taken.configs = part(slate.configs);
  taken.targets = part(slate.targets);
  taken.states = part(slate.states);
  return taken;
}

// The state table that a slate's states are rows of.
std::span<const float> table_of(const Dataset& dataset, const Slate& slate) {
  if (slate.local_states.empty()) return dataset.states(slate.graph).features;
  return slate.local_states;
}

}  // namespace

// Draws the edges of each slate at its first use; `slate` is its index in the unit. Not
// thread-safe.
class UnitBuilder::Graphs {
 public:
  Graphs(const UnitBuilder& builder, const EdgeDraw& draw) : builder_(builder), draw_(draw) {}

  std::span<const std::int32_t> edges(std::size_t slate, int graph) {
    if (keeps_all()) return builder_.dataset_.graph(graph).edge_index;
    return drawn(slate, graph).edges;
  }
  const RefinedGraph& refined(std::size_t slate, int graph) {
    if (keeps_all()) return builder_.prepared_.refined(graph);
    Drawn& own = drawn(slate, graph);
    if (!own.refined) own.refined.emplace(builder_.prepared_.refine(graph, own.edges));
    return *own.refined;
  }

  bool keeps_all() const { return draw_.dropout <= 0; }

 private:
  struct Drawn {
    std::vector<std::int32_t> edges;
    std::optional<const RefinedGraph> refined;
  };

  Drawn& drawn(std::size_t slate, int graph) {
    const auto [at, fresh] = drawn_.try_emplace(slate);
    if (fresh) at->second.edges = kept_edges(builder_.dataset_.graph(graph), draw_, slate);
    return at->second;
  }

  const UnitBuilder& builder_;
  const EdgeDraw draw_;
  std::map<std::size_t, Drawn> drawn_;
};

bool PlanComparison::refined_pays() const {
  return refined_cost.step() <= kRefinedPays * dense_cost.step();
}

UnitBuilder::UnitBuilder(const Dataset& dataset, const Network& network, PlanMode mode,
                         int config_chunk, UnitUse use)
    : dataset_(dataset),
      network_(network),
      mode_(mode),
      config_chunk_(static_cast<std::size_t>(config_chunk)),
      use_(use),
      shape_(network.plan_shape()),
      config_features_(network.schema().config_features),
      work_(network.config().work(network.schema())),
      prepared_(dataset, network) {}

void UnitBuilder::share_graphs(bool draws_edges, ThreadPool& pool) {
  prepared_.share(mode_ != PlanMode::dense && !draws_edges, pool);
}

std::int64_t UnitBuilder::state_rows(const Slate& slate) const {
  return static_cast<std::int64_t>(table_of(dataset_, slate).size()) / config_features_;
}

std::vector<std::int64_t> UnitBuilder::input_begins(std::span<const Slate> slates) const {
  std::map<int, std::int64_t> begin_of;
  std::int64_t rows = 0;
  std::vector<std::int64_t> begins;
  for (const Slate& slate : slates) {
    const auto [begin, fresh] = begin_of.emplace(slate.graph, rows);
    if (fresh) rows += prepared_.of(slate.graph).input->nodes();
    begins.push_back(begin->second);
  }
  return begins;
}

Plan UnitBuilder::dense_plan(std::span<const Slate> slates, Graphs& graphs) const {
  const std::vector<std::int64_t> inputs = input_begins(slates);
  std::vector<PlanSlate> views;
  for (std::size_t s = 0; s < slates.size(); ++s) {
    const Graph& graph = dataset_.graph(slates[s].graph);
    const PreparedGraph& prepared = prepared_.of(slates[s].graph);
    views.push_back({graph.nodes, graphs.edges(s, slates[s].graph), graph.config_nodes,
                     static_cast<std::int64_t>(slates[s].configs.size()), slates[s].states,
                     state_rows(slates[s]), prepared.node_class, prepared.input->nodes(),
                     inputs[s]});
  }
  return build_dense_plan(views, shape_);
}

Plan UnitBuilder::refined_plan(std::span<const Slate> slates, Graphs& graphs) const {
  const std::vector<std::int64_t> inputs = input_begins(slates);
  // Local state tables are classified together, so that slates of one graph can share states.
  std::vector<float> local;
  for (const Slate& slate : slates)
    local.insert(local.end(), slate.local_states.begin(), slate.local_states.end());
  const std::vector<std::int32_t> local_class = classes_of_rows(local, config_features_);
  std::vector<RefinedSlate> views;
  std::int64_t at = 0;
  for (std::size_t s = 0; s < slates.size(); ++s) {
    const Slate& slate = slates[s];
    const PreparedGraph& prepared = prepared_.of(slate.graph);
    RefinedSlate view{&graphs.refined(s, slate.graph),
                      static_cast<std::int64_t>(slate.configs.size()),
                      slate.states,
                      prepared.state_class,
                      state_rows(slate),
                      inputs[s]};
    if (!slate.local_states.empty()) {
      view.state_class = std::span(local_class).subspan(at, view.state_rows);
      at += view.state_rows;
    }
    views.push_back(view);
  }
  return build_refined_plan(views);
}

PlanComparison UnitBuilder::compare(std::span<const Slate> slates, const EdgeDraw& edges) const {
  Graphs graphs(*this, edges);
  return compare(slates, graphs);
}

PlanComparison UnitBuilder::compare(std::span<const Slate> slates, Graphs& graphs) const {
  PlanComparison plans;
  std::vector<std::int64_t> needed_rows(shape_.layers.size());
  // Graphs with dropped edges are refined again for each unit.
  const auto start = std::chrono::steady_clock::now();
  for (std::size_t s = 0; s < slates.size(); ++s) {
    const RefinedGraph& graph = graphs.refined(s, slates[s].graph);
    const auto configs = static_cast<std::int64_t>(slates[s].configs.size());
    plans.dense_rows += graph.nodes() * configs;
    for (std::size_t i = 0; i < needed_rows.size(); ++i)
      needed_rows[i] +=
          (shape_.per_element ? graph.nodes() : graph.needed_nodes(static_cast<int>(i) + 1)) *
          configs;
  }
  const auto prepared = std::chrono::steady_clock::now();
  plans.refined = refined_plan(slates, graphs);
  const auto end = std::chrono::steady_clock::now();
  plans.build_seconds = seconds_between(prepared, end);
  if (!graphs.keeps_all()) plans.drawn_seconds = seconds_between(start, end);
  plans.refined_cost = plan_cost(plans.refined, work_);
  plans.dense_cost = dense_plan_cost(plans.dense_rows, needed_rows, plans.refined.nodes,
                                     plans.refined.states, work_);
  return plans;
}

UnitEstimate UnitBuilder::estimate(std::span<const Slate> slates, const EdgeDraw& edges) const {
  const PlanComparison plans = compare(slates, edges);
  if (takes_refined(plans)) return {plans.refined_cost, true};
  return {plans.dense_cost, false};
}

double UnitBuilder::state_floats(const Plan& plan) const {
  return plan_cost(plan, work_).states;
}

int UnitBuilder::members_together(const Unit& unit) const {
  const UnitInput& input = unit.chunks.empty() ? unit.input : unit.chunks.front();
  return network_.members_together(*input.plan);
}

bool UnitBuilder::takes_refined(const PlanComparison& plans) const {
  return mode_ == PlanMode::refined || (mode_ == PlanMode::automatic && plans.refined_pays());
}

Plan UnitBuilder::chosen_plan(std::span<const Slate> slates, Graphs& graphs) const {
  if (mode_ == PlanMode::dense) return dense_plan(slates, graphs);
  PlanComparison plans = compare(slates, graphs);
  return takes_refined(plans) ? std::move(plans.refined) : dense_plan(slates, graphs);
}

UnitInput UnitBuilder::input_of(std::span<const Slate> slates, Graphs& graphs) const {
  UnitInput input;
  std::set<int> seen;
  for (const Slate& slate : slates) {
    const std::span<const float> table = table_of(dataset_, slate);
    input.states.insert(input.states.end(), table.begin(), table.end());
    if (seen.insert(slate.graph).second) input.graphs.push_back(prepared_.of(slate.graph).input);
  }
  input.plan = std::make_shared<const Plan>(chosen_plan(slates, graphs));
  input.use = use_;
  network_.prepare_unit(input);
  return input;
}

Unit UnitBuilder::build(std::span<const SlateRows> slates, const EdgeDraw& edges) const {
  Graphs graphs(*this, edges);
  Unit unit;
  unit.begin = std::chrono::steady_clock::now();
  for (const SlateRows& rows : slates) unit.slates.push_back(dataset_.slate(rows.graph, rows.rows));
  unit.read = std::chrono::steady_clock::now();
  add_inputs(unit, graphs);
  unit.planned = std::chrono::steady_clock::now();
  return unit;
}

// Whole, or in chunks.
void UnitBuilder::add_inputs(Unit& unit, Graphs& graphs) const {
  const Slate& slate = unit.slates.front();
  const std::size_t configs = slate.configs.size();
  if (config_chunk_ == 0 || unit.slates.size() != 1 || configs <= config_chunk_) {
    unit.input = input_of(unit.slates, graphs);
    return;
  }
  const std::size_t step = config_chunk_ - 1;
  for (std::size_t next = 1; next < configs; next += step) {
    const Slate chunk = first_and(slate, next, std::min(configs, next + step));
    unit.chunks.push_back(input_of(std::span(&chunk, 1), graphs));
  }
}

}  // namespace tpudist
