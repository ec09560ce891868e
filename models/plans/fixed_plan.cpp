#include <algorithm>
#include <functional>
#include <utility>

#include "models/plans/build_plan.hpp"
#include "models/plans/csr.hpp"
#include "models/plans/kept_rows.hpp"
#include "models/plans/slate_refiner.hpp"

namespace tpudist {
namespace {

// The hashes of rows of an UnorderedPlan before layer 0 .. depth.
using RowHashes = std::vector<std::vector<ContentHash>>;

RowHashes row_hashes(const UnorderedPlan& raw, std::span<const ContentHash> states) {
  const auto of_state = [&](std::int32_t state) {
    return state < 0 ? ContentHash() : states[state];
  };
  RowHashes hashes(1);
  for (std::size_t row = 0; row < raw.node.size(); ++row)
    hashes[0].push_back(ContentHash::of_number(raw.node[row]).then(of_state(raw.state[row])));
  for (const RawLayer& layer : raw.layers) {
    const std::vector<ContentHash>& before = hashes.back();
    std::vector<std::vector<ContentHash>> around;
    for (const RowLists& lists : layer.neighbourhoods) {
      auto& own = around.emplace_back(static_cast<std::size_t>(lists.size()));
      for (std::int64_t list = 0; list < lists.size(); ++list) {
        for (const std::int32_t row : lists.of(list)) own[list] += before[row].as_member();
      }
    }
    std::vector<ContentHash> behind;
    for (std::size_t row = 0; row < layer.self.size(); ++row) {
      const ContentHash state = of_state(layer.state.empty() ? -1 : layer.state[row]);
      behind.push_back(before[layer.self[row]].after_layer(
          layer.state.empty() ? nullptr : &state, around.size(),
          [&](std::size_t set) { return around[set][layer.neighbourhood[set][row]]; }));
    }
    hashes.push_back(std::move(behind));
  }
  return hashes;
}

// Numbers raw rows or lists by their first use.
class ByUse {
 public:
  explicit ByUse(std::size_t size) : place_(size, -1) {}
  std::int32_t place(std::int32_t raw) {
    if (place_[raw] < 0) {
      place_[raw] = to_index32(std::ssize(used_));
      used_.push_back(raw);
    }
    return place_[raw];
  }
  const std::vector<std::int32_t>& used() const { return used_; }

 private:
  std::vector<std::int32_t> place_, used_;
};

// Appends a neighbourhood as a row of a matrix: its rows, with their numbers, sorted by content.
void add_neighbourhood(std::vector<std::pair<ContentHash, std::int32_t>>& rows,
                       Aggregation aggregation, Csr& matrix) {
  const double weight = aggregation == Aggregation::mean && !rows.empty()
                            ? 1.0 / static_cast<double>(rows.size())
                            : 1.0;
  std::ranges::sort(rows);
  for (std::size_t i = 0, end; i < rows.size(); i = end) {
    for (end = i + 1; end < rows.size() && rows[end].second == rows[i].second;) ++end;
    matrix.source.push_back(rows[i].second);
    matrix.weight.push_back(static_cast<float>(static_cast<double>(end - i) * weight));
  }
  matrix.begin.push_back(to_index32(matrix.entries()));
}

// The layer that computes the rows `behind`, from the rows that `before` then names.
std::shared_ptr<const PlanLayer> layer_of(const RawLayer& raw, const LayerShape& shape,
                                          const std::vector<std::int32_t>& behind,
                                          const std::vector<ContentHash>& hashes, ByUse& before) {
  auto layer = std::make_shared<PlanLayer>();
  layer->rows_out = std::ssize(behind);
  for (const std::int32_t row : behind) layer->self.index.push_back(before.place(raw.self[row]));
  if (shape.joins_states) {
    for (const std::int32_t row : behind) layer->state.push_back(raw.state[row]);
  }
  std::vector<std::pair<ContentHash, std::int32_t>> rows;
  for (std::size_t set = 0; set < raw.neighbourhoods.size(); ++set) {
    EdgeSet& edges = layer->edges.emplace_back();
    const RowLists& lists = raw.neighbourhoods[set];
    ByUse lists_used(static_cast<std::size_t>(lists.size()));
    for (const std::int32_t row : behind)
      edges.neighbourhood.index.push_back(lists_used.place(raw.neighbourhood[set][row]));
    Csr& matrix = edges.aggregate.forward;
    matrix.begin.push_back(0);
    for (const std::int32_t list : lists_used.used()) {
      rows.clear();
      for (const std::int32_t row : lists.of(list))
        rows.emplace_back(hashes[row], before.place(row));
      add_neighbourhood(rows, shape.aggregation, matrix);
    }
  }
  layer->rows_in = std::ssize(before.used());
  return layer;
}

// Appends lists as rows of a matrix, in their order. `number(i)` is the column of i.
template <typename Number>
void add_lists(const RowLists& lists, const Number& number, Csr& matrix) {
  for (std::int64_t list = 0; list < lists.size(); ++list) {
    for (const std::int32_t i : lists.of(list)) matrix.source.push_back(number(i));
    matrix.begin.push_back(to_index32(matrix.entries()));
  }
}

// A plan without rows.
Plan empty_plan(const RefinedSlate& slate) {
  Plan plan;
  const std::size_t depth = slate.graph->shape().layers.size();
  plan.nodes = std::max(slate.graph->classes(), slate.input_rows);
  plan.states = slate.state_rows;
  plan.configs = slate.configs;
  plan.layers.resize(depth);
  plan.needed_counts.resize(depth);
  plan.readout.slate_of_config.assign(static_cast<std::size_t>(slate.configs), 0);
  for (Csr* sums :
       {&plan.readout.cells.forward, &plan.readout.scores.forward, &plan.readout.common.forward})
    sums->begin.push_back(0);
  return plan;
}

// `rows`: after the last layer.
void finish(const RefinedGraph& graph, std::int64_t rows, Plan& plan) {
  const auto weight = static_cast<float>(1.0 / static_cast<double>(graph.nodes()));
  for (Csr* sums : {&plan.readout.cells.forward, &plan.readout.common.forward})
    if (graph.shape().mean_readout) sums->weight.assign(sums->source.size(), weight);
  plan.readout.common.transposed.begin.assign(static_cast<std::size_t>(rows) + 1, 0);
  for (std::size_t i = 0; i < plan.layers.size(); ++i)
    plan.needed_counts[i].neighbourhoods.resize(plan.layers[i]->edges.size());
}

// Plans the rows that a KeptRows lacks, configuration by configuration: new cells, their new rows,
// and the new rows that these need, down to the first layer.
class KeptPlanner {
 public:
  KeptPlanner(const RefinedSlate& slate, KeptUse& use)
      : slate_(slate),
        graph_(*slate.graph),
        use_(use),
        contents_(use.rows->contents()),
        depth_(graph_.shape().layers.size()),
        plan_(empty_plan(slate)) {
    use_.levels.resize(depth_ + 2);
    for (const LayerShape& layer : graph_.shape().layers) {
      const std::size_t sets = layer.edge_kinds.size();
      PlanLayer& own = *layers_.emplace_back(std::make_shared<PlanLayer>());
      own.edges.resize(sets);
      for (EdgeSet& set : own.edges) set.aggregate.forward.begin.push_back(0);
      lists_.emplace_back(sets);
    }
    sources_.resize(depth_);
  }

  Plan build(std::span<const ContentHash> state_hash) {
    Readout& readout = plan_.readout;
    const std::size_t width = graph_.config_nodes().size(), cells = contents_.cells().size() - 1;
    for (std::int64_t config = 0; config < slate_.configs; ++config) {
      contents_.change_to(graph_, slate_.states.subspan(config * width, width), state_hash);
      for (std::size_t i = 0; i < cells; ++i) readout.scores.forward.source.push_back(cell(i));
      end_row(readout.scores.forward);
    }
    KeptLevel& level = use_.levels.back();
    if (use_.rows->keeps(depth_ + 1)) {
      level.taken.push_back(level.taken[cell(cells)]);
      readout.left_out = {static_cast<double>(graph_.nodes())};
    } else {
      add_sum(cells, readout.common.forward);
    }
    end_row(readout.common.forward);
    for (std::size_t i = 0; i < depth_; ++i) {
      PlanLayer& layer = *layers_[i];
      // Neighbours follow the rows that have a state after the layer, too.
      for (EdgeSet& set : layer.edges) {
        for (std::int32_t& source : set.aggregate.forward.source) source = take(i, source);
      }
      layer.rows_in = rows(i);
      layer.rows_out = std::ssize(layer.self.index);
      plan_.layers[i] = layers_[i];
    }
    finish(graph_, rows(depth_), plan_);
    return std::move(plan_);
  }

 private:
  static void end_row(Csr& matrix) { matrix.begin.push_back(to_index32(matrix.entries())); }
  void add_sum(std::size_t cell, Csr& matrix) {
    for (const std::int32_t node : contents_.cells()[cell])
      matrix.source.push_back(take(depth_, row(depth_, node)));
  }
  // The rows before a layer, or after the last, that the plan names.
  std::int64_t rows(std::size_t depth) const {
    if (use_.rows->keeps(depth)) return std::ssize(use_.levels[depth].taken);
    return depth == 0 ? plan_.first_rows() : std::ssize(layers_[depth - 1]->self.index);
  }
  // The number of a row at this place among those that the plan names.
  std::int32_t take(std::size_t depth, std::int32_t place) {
    KeptRows& rows = *use_.rows;
    return rows.keeps(depth) ? rows.take(depth, place, use_.levels[depth]) : place;
  }
  // The place of a row of the configuration, or of a cell; `compute` adds a new one to the plan.
  template <typename Hash, typename Compute>
  std::int32_t place(std::size_t depth, std::int32_t of, const Hash& hash, const Compute& compute) {
    std::int32_t& place = contents_.place(depth, of);
    if (place >= 0) return place;
    bool fresh = false;
    place = use_.rows->place(depth, hash(), fresh);
    if (fresh && use_.rows->keeps(depth)) use_.levels[depth].computed.push_back(place);
    if (fresh) compute();
    return place;
  }
  std::int32_t cell(std::size_t i) {
    const auto hash = [&] {
      ContentHash all{2, 2};
      for (const std::int32_t node : contents_.cells()[i])
        all = all.then(contents_.row(depth_, node));
      return all;
    };
    return take(depth_ + 1, place(depth_ + 1, static_cast<std::int32_t>(i), hash, [&] {
                  add_sum(i, plan_.readout.cells.forward);
                  end_row(plan_.readout.cells.forward);
                }));
  }
  std::int32_t row(std::size_t depth, std::int32_t node) {
    return place(
        depth, node, [&] { return contents_.row(depth, node); }, [&] { compute(depth, node); });
  }

  void compute(std::size_t depth, std::int32_t node) {
    if (depth == 0) {
      plan_.node.push_back(graph_.node_class()[node]);
      plan_.state.push_back(graph_.shape().early_join ? contents_.state_row(node) : -1);
      return;
    }
    const LayerShape& shape = graph_.shape().layers[depth - 1];
    PlanLayer& layer = *layers_[depth - 1];
    layer.self.index.push_back(take(depth - 1, row(depth - 1, node)));
    if (shape.joins_states) layer.state.push_back(contents_.state_row(node));
    for (std::size_t set = 0; set < layer.edges.size(); ++set) {
      bool fresh = false;
      layer.edges[set].neighbourhood.index.push_back(
          lists_[depth - 1][set].number(contents_.around(depth - 1, set, node), fresh));
      if (fresh) {
        auto& sources = sources_[depth - 1];
        sources.clear();
        for (const std::int32_t source : graph_.adjacency(shape.edge_kinds[set]).of(node))
          sources.emplace_back(contents_.row(depth - 1, source), row(depth - 1, source));
        add_neighbourhood(sources, shape.aggregation, layer.edges[set].aggregate.forward);
      }
    }
  }

  const RefinedSlate& slate_;
  const RefinedGraph& graph_;
  KeptUse& use_;
  RowContents& contents_;
  const std::size_t depth_;
  Plan plan_;
  std::vector<std::shared_ptr<PlanLayer>> layers_;
  std::vector<std::vector<ContentNumbers>> lists_;  // [depth][edge sets] of the neighbourhoods
  std::vector<std::vector<std::pair<ContentHash, std::int32_t>>> sources_;  // [depth] scratch
};

}  // namespace

Plan build_fixed_plan(const RefinedSlate& slate, std::span<const ContentHash> state_hash) {
  const RefinedGraph& graph = *slate.graph;
  const PlanShape& shape = graph.shape();
  const std::size_t depth = shape.layers.size();
  Plan plan = empty_plan(slate);
  const GraphSlates alone{&graph, {0}, slate.configs, 0};
  const SlateOffsets offsets{0, 0, 0};
  UnorderedPlan raw;
  SlateRefiner refiner(alone, std::span(&slate, 1), std::span(&offsets, 1), 64);
  refiner.start(raw);
  for (std::size_t i = 0; i < depth; ++i) {
    RawLayer& layer = raw.layers.emplace_back();
    layer.neighbourhood.resize(shape.layers[i].edge_kinds.size());
    layer.neighbourhoods.resize(shape.layers[i].edge_kinds.size());
    refiner.advance(static_cast<int>(i), 0, layer);
  }
  const RowHashes hashes = row_hashes(raw, state_hash);
  ByUse rows(hashes[depth].size());
  const RawReadout readout = refiner.read_out_fixed();
  const auto place = [&](std::int32_t row) { return rows.place(row); };
  add_lists(readout.cells, place, plan.readout.cells.forward);
  add_lists(readout.common, place, plan.readout.common.forward);
  add_lists(readout.cells_of_config, std::identity(), plan.readout.scores.forward);
  const std::int64_t last = std::ssize(rows.used());
  // From the last layer down: the rows at each depth that the plan computes.
  for (std::size_t at = depth; at > 0; --at) {
    ByUse before(hashes[at - 1].size());
    plan.layers[at - 1] =
        layer_of(raw.layers[at - 1], shape.layers[at - 1], rows.used(), hashes[at - 1], before);
    rows = std::move(before);
  }
  for (const std::int32_t row : rows.used()) {
    plan.node.push_back(raw.node[row]);
    plan.state.push_back(raw.state[row]);
  }
  finish(graph, last, plan);
  return plan;
}

Plan build_kept_plan(const RefinedSlate& slate, std::span<const ContentHash> state_hash,
                     KeptUse& use) {
  use.rows->start(*slate.graph);
  return KeptPlanner(slate, use).build(state_hash);
}

}  // namespace tpudist
