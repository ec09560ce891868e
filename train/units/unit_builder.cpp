#include "train/units/unit_builder.hpp"

#include <algorithm>
#include <deque>
#include <iterator>
#include <map>
#include <optional>
#include <set>

#include "core/hash.hpp"
#include "core/numbers.hpp"
#include "models/inputs/unit_input.hpp"
#include "models/plans/row_keys.hpp"

namespace tpudist {
namespace {

// A refined plan must need at most this share of the dense plan's arithmetic, because its blocks
// are read and written once more.
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

// The use of the nodes of a part that contains copies of some nodes.
std::vector<NodeUse> use_of_copies(const Graph& graph, const GraphPart& part) {
  const auto nodes = static_cast<std::size_t>(graph.nodes);
  std::vector<NodeUse> use(nodes, NodeUse::constant);
  for (std::size_t i = nodes; i < part.nodes.size(); ++i) {
    use[part.nodes[i]] = NodeUse::left_out;
    use.push_back(NodeUse::trained);
  }
  return use;
}

// The state table whose rows are a slate's states.
std::span<const float> table_of(const Dataset& dataset, const Slate& slate) {
  if (slate.local_states.empty()) return dataset.states(slate.graph).features;
  return slate.local_states;
}

}  // namespace

// Draws the part of its graph that a slate sees, at the first use. `at`: the slate's index in the
// unit. Not thread-safe.
class UnitBuilder::Graphs {
 public:
  Graphs(const UnitBuilder& builder, const GraphDraw& draw) : builder_(builder), draw_(draw) {}

  // A PlanSlate with the fields of the graph, not of configurations; valid as long as this object.
  PlanSlate seen(std::size_t at, const Slate& slate) {
    const int graph = slate.graph;
    const Graph& whole = builder_.dataset_.graph(graph);
    const PreparedGraph& prepared = builder_.prepared_.of(graph);
    PlanSlate view;
    view.nodes = whole.nodes;
    view.edges = whole.edge_index;
    view.config_edges = whole.config_edges;
    view.config_nodes = whole.config_nodes;
    view.input_row = prepared.node_class;
    view.input_rows = prepared.input->nodes();
    if (keeps_whole(graph)) return view;
    const Drawn& own = drawn(at, slate);
    view.nodes = std::ssize(own.part.nodes);
    view.edges = own.part.edges;
    view.config_edges = own.part.config_edges;
    view.config_nodes = own.part.config_nodes;
    view.input_row = own.node_class;
    view.use = own.use;
    return view;
  }
  const RefinedGraph& refined(std::size_t at, const Slate& slate) {
    if (keeps_whole(slate.graph)) return builder_.prepared_.refined(slate.graph);
    Drawn& own = drawn(at, slate);
    if (!own.refined)
      own.refined.emplace(std::ssize(own.part.nodes), own.part.edges, own.part.config_nodes,
                          own.node_class, builder_.shape_, own.part.config_edges);
    return *own.refined;
  }
  // The states of the configurable nodes that the slate sees, [K, nc'], even for a part of its
  // configurations; valid as long as this object and `slate`.
  std::span<const std::int32_t> states(std::size_t at, const Slate& slate) {
    if (keeps_whole(slate.graph)) return slate.states;
    const std::vector<std::int32_t>& places = drawn(at, slate).part.config_places;
    const std::size_t width = builder_.dataset_.graph(slate.graph).config_nodes.size();
    if (places.size() == width) return slate.states;  // all configurable nodes, in order
    std::vector<std::int32_t>& own = states_.emplace_back();
    for (std::size_t first = 0; first < slate.states.size(); first += width)
      for (const std::int32_t place : places)
        own.push_back(slate.states[first + static_cast<std::size_t>(place)]);
    return own;
  }

  // Whether anything was drawn.
  bool draws() const { return !drawn_.empty(); }

 private:
  struct Drawn {
    GraphPart part;
    Array<std::int32_t> node_class;  // [part.nodes]
    std::vector<NodeUse> use;        // [part.nodes]; empty: all are trained
    std::optional<const RefinedGraph> refined;
  };

  bool keeps_whole(int graph) const {
    return tpudist::keeps_whole(builder_.dataset_.graph(graph),
                                builder_.dataset_.options().reduction, draw_);
  }
  Drawn& drawn(std::size_t at, const Slate& slate) {
    const auto [found, fresh] = drawn_.try_emplace(at);
    if (fresh) {
      Drawn& own = found->second;
      const Graph& graph = builder_.dataset_.graph(slate.graph);
      own.part = drawn_part(graph, builder_.dataset_.options().reduction, draw_, at);
      const Array<std::int32_t>& all = builder_.prepared_.of(slate.graph).node_class;
      std::vector<std::int32_t> classes;
      for (const std::int32_t node : own.part.nodes) classes.push_back(all[node]);
      own.node_class = std::move(classes);
      if (std::ssize(own.part.nodes) > graph.nodes) own.use = use_of_copies(graph, own.part);
    }
    return found->second;
  }

  const UnitBuilder& builder_;
  const GraphDraw draw_;
  std::map<std::size_t, Drawn> drawn_;
  std::deque<std::vector<std::int32_t>> states_;
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

void UnitBuilder::fix_order() {
  fixes_order_ = mode_ != PlanMode::dense && !network_.kept_channels().empty();
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

std::vector<PlanSlate> UnitBuilder::views(std::span<const Slate> slates, Graphs& graphs) const {
  const std::vector<std::int64_t> inputs = input_begins(slates);
  std::vector<PlanSlate> views;
  for (std::size_t s = 0; s < slates.size(); ++s) {
    PlanSlate& view = views.emplace_back(graphs.seen(s, slates[s]));
    view.configs = static_cast<std::int64_t>(slates[s].configs.size());
    view.states = graphs.states(s, slates[s]);
    view.state_rows = state_rows(slates[s]);
    view.input_begin = inputs[s];
  }
  return views;
}

Plan UnitBuilder::dense_plan(std::span<const Slate> slates, Graphs& graphs) const {
  return build_dense_plan(views(slates, graphs), shape_);
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
    RefinedSlate& view = views.emplace_back(refined_view(slates[s], s, graphs));
    view.input_begin = inputs[s];
    if (!slates[s].local_states.empty()) {
      view.state_class = std::span(local_class).subspan(at, view.state_rows);
      at += view.state_rows;
    }
  }
  return build_refined_plan(views);
}

// With the classes of the graph's states.
RefinedSlate UnitBuilder::refined_view(const Slate& slate, std::size_t at, Graphs& graphs) const {
  const PreparedGraph& prepared = prepared_.of(slate.graph);
  return {&graphs.refined(at, slate), static_cast<std::int64_t>(slate.configs.size()),
          graphs.states(at, slate),   prepared.state_class,
          state_rows(slate),          0,
          prepared.input->nodes()};
}

Plan UnitBuilder::fixed_plan(const Slate& slate, Graphs& graphs, KeptUse& use) const {
  RefinedSlate view = refined_view(slate, 0, graphs);
  const std::span<const float> table = table_of(dataset_, slate);
  std::vector<ContentHash> hashes;
  std::vector<float> row(static_cast<std::size_t>(config_features_));
  for (std::size_t at = 0; at < table.size(); at += row.size()) {
    for (std::size_t c = 0; c < row.size(); ++c) row[c] = table[at + c] + 0.0f;  // -0 is 0
    const auto bytes = std::as_bytes(std::span(row));
    hashes.push_back({hash64(bytes, 1), hash64(bytes, 2)});
  }
  if (use.rows) return build_kept_plan(view, hashes, use);
  const std::vector<std::int32_t> local_class =
      classes_of_rows(slate.local_states, config_features_);
  if (!slate.local_states.empty()) view.state_class = local_class;
  return build_fixed_plan(view, hashes);
}

PlanComparison UnitBuilder::compare(std::span<const Slate> slates, const GraphDraw& draw) const {
  Graphs graphs(*this, draw);
  return compare(slates, graphs);
}

PlanComparison UnitBuilder::compare(std::span<const Slate> slates, Graphs& graphs) const {
  PlanComparison plans;
  std::vector<std::int64_t> needed_rows(shape_.layers.size()), entries(shape_.layers.size());
  // Drawn parts of graphs are refined for each unit.
  const auto start = std::chrono::steady_clock::now();
  for (std::size_t s = 0; s < slates.size(); ++s) {
    const RefinedGraph& graph = graphs.refined(s, slates[s]);
    const auto configs = static_cast<std::int64_t>(slates[s].configs.size());
    plans.dense_rows += graph.nodes() * configs;
    for (std::size_t i = 0; i < needed_rows.size(); ++i) {
      needed_rows[i] +=
          (shape_.per_element ? graph.nodes() : graph.needed_nodes(static_cast<int>(i) + 1)) *
          configs;
      for (const EdgeKind kind : shape_.layers[i].edge_kinds)
        entries[i] +=
            (along_graph(kind) ? std::ssize(graph.adjacency(kind).source) : graph.nodes()) *
            configs;
    }
  }
  plans.refined = refined_plan(slates, graphs);
  if (graphs.draws())
    plans.drawn_seconds = seconds_between(start, std::chrono::steady_clock::now());
  plans.refined_cost = plan_cost(plans.refined, work_);
  plans.dense_cost = dense_plan_cost(plans.dense_rows, needed_rows, entries, plans.refined.nodes,
                                     plans.refined.states, work_);
  return plans;
}

UnitEstimate UnitBuilder::estimate(std::span<const Slate> slates, const GraphDraw& draw) const {
  const PlanComparison plans = compare(slates, draw);
  if (takes_refined(plans)) return {plans.refined_cost, true};
  return {plans.dense_cost, false};
}

double UnitBuilder::state_floats(const Plan& plan) const {
  return plan_cost(plan, work_).states;
}

double UnitBuilder::step_work(const Unit& unit) const {
  if (unit.chunks.empty()) return UnitEstimate{plan_cost(*unit.input.plan, work_)}.step_work();
  double work = 0;
  for (const UnitInput& chunk : unit.chunks)
    work += UnitEstimate{plan_cost(*chunk.plan, work_)}.step_work();
  return work;
}

int UnitBuilder::members_together(const Unit& unit) const {
  const UnitInput& input = unit.chunks.empty() ? unit.input : unit.chunks.front();
  return network_.members_together(*input.plan);
}

bool UnitBuilder::takes_refined(const PlanComparison& plans) const {
  return mode_ == PlanMode::refined || fixes_order_ ||
         (mode_ == PlanMode::automatic && plans.refined_pays());
}

Plan UnitBuilder::chosen_plan(std::span<const Slate> slates, Graphs& graphs) const {
  if (mode_ == PlanMode::dense) return dense_plan(slates, graphs);
  PlanComparison plans = compare(slates, graphs);
  return takes_refined(plans) ? std::move(plans.refined) : dense_plan(slates, graphs);
}

UnitInput UnitBuilder::input_of(std::span<const Slate> slates, Graphs& graphs) const {
  return input_of(slates, chosen_plan(slates, graphs));
}

UnitInput UnitBuilder::input_of(std::span<const Slate> slates, Plan plan, KeptUse kept) const {
  UnitInput input;
  input.kept = std::move(kept);
  std::set<int> seen;
  for (const Slate& slate : slates) {
    const std::span<const float> table = table_of(dataset_, slate);
    input.states.insert(input.states.end(), table.begin(), table.end());
    if (seen.insert(slate.graph).second) input.graphs.push_back(prepared_.of(slate.graph).input);
  }
  input.plan = std::make_shared<const Plan>(std::move(plan));
  input.use = use_;
  if (!joins_units()) {
    network_.prepare_unit(input);
  } else {
    input.plan = computed_part(std::move(input.plan));
  }
  return input;
}

std::shared_ptr<const Plan> UnitBuilder::computed_part(std::shared_ptr<const Plan> plan) const {
  if (use_ != UnitUse::differences || !network_.config().adds_up_rows()) return plan;
  std::shared_ptr<const Plan> part = needed_part(*plan, shape_);
  return part ? part : plan;
}

Unit UnitBuilder::build(std::span<const SlateRows> slates, const GraphDraw& draw) const {
  const auto begin = std::chrono::steady_clock::now();
  std::vector<Slate> read;
  for (const SlateRows& rows : slates) read.push_back(dataset_.slate(rows.graph, rows.rows));
  Unit unit = build(std::move(read), draw);
  unit.begin = begin;
  for (std::size_t s = 0; draw.one_segment && s < slates.size(); ++s) {
    unit.segments.push_back(segment_draw(dataset_.graph(slates[s].graph), draw, s));
    unit.rows.push_back(slates[s]);
  }
  return unit;
}

Unit UnitBuilder::build(std::vector<Slate> slates, const GraphDraw& draw, KeptRows* kept) const {
  Graphs graphs(*this, draw);
  Unit unit;
  unit.begin = std::chrono::steady_clock::now();
  unit.slates = std::move(slates);
  unit.read = std::chrono::steady_clock::now();
  add_inputs(unit, graphs, kept);
  unit.planned = std::chrono::steady_clock::now();
  return unit;
}

// Whole, or in chunks.
void UnitBuilder::add_inputs(Unit& unit, Graphs& graphs, KeptRows* kept) const {
  const Slate& slate = unit.slates.front();
  if (fixes_order_ && unit.slates.size() == 1) {
    KeptUse use{kept, {}};
    Plan plan = fixed_plan(slate, graphs, use);
    unit.input = input_of(unit.slates, std::move(plan), std::move(use));
    return;
  }
  const std::size_t configs = slate.configs.size();
  if (config_chunk_ == 0 || unit.slates.size() != 1 || configs <= config_chunk_) {
    unit.input = input_of(unit.slates, graphs);
    return;
  }
  const std::size_t step = config_chunk_ - 1;
  for (std::size_t next = 1; next < configs; next += step) {
    const Slate chunk = first_and(slate, next, std::min(configs, next + step));
    unit.chunks.push_back(input_of(std::span(&chunk, 1), graphs));
    if (joins_units()) network_.prepare_unit(unit.chunks.back());
  }
}

}  // namespace tpudist
