#include "models/refined_plan.hpp"

#include <algorithm>
#include <map>

#include "core/error.hpp"
#include "models/colour_table.hpp"
#include "models/csr.hpp"
#include "models/lane_partitions.hpp"

namespace tpudist {
namespace {

constexpr std::uint32_t kStatic =
    0x80000000u;  // marks the colour of a node that no configuration reaches

// Slates of one graph, refined together: their configurations are the lanes.
struct Group {
  const RefinedGraph* graph;
  std::vector<std::size_t> slates;
  std::int64_t lanes = 0;
  std::int64_t first_node = 0;  // in the plan's numbering
};

// Where a slate's states and configurations begin in the plan's numbering.
struct Offsets {
  std::int64_t node, state, config;
};

// Colours of one node: the lanes' partition, and the colour of each of its classes.
struct NodeColours {
  std::int32_t partition = 0;
  std::int64_t begin = 0;  // into Layer::colours
};

// One layer of one group while it is refined.
struct Layer {
  std::vector<NodeColours> of_node;   // [n], of reached nodes
  std::vector<std::int32_t> colours;  // of all reached nodes' classes
  std::int64_t rows = 0;              // reached rows; the static ones follow
};

// Entries of one matrix under construction, row by row.
class CsrWriter {
 public:
  // Adds a row from sorted sources, equal ones merged; each counts `unit`.
  void add_row(std::span<const std::int32_t> sorted, double unit) {
    for (std::size_t i = 0; i < sorted.size();) {
      std::size_t end = i;
      while (end < sorted.size() && sorted[end] == sorted[i]) ++end;
      csr_.source.push_back(sorted[i]);
      csr_.weight.push_back(static_cast<float>(static_cast<double>(end - i) * unit));
      i = end;
    }
    csr_.begin.push_back(csr_.entries());
  }
  Csr take() { return std::move(csr_); }

 private:
  Csr csr_{{0}, {}, {}};
};

Relation finish(CsrWriter& writer, std::int64_t rows_in) {
  Relation relation;
  relation.in = writer.take();
  relation.out = transpose(relation.in, rows_in);
  return relation;
}

double unit_weight(Aggregation aggregation, std::size_t degree) {
  return aggregation == Aggregation::mean && degree > 0 ? 1.0 / static_cast<double>(degree) : 1.0;
}

// Matrices of one step over all groups.
struct StepWriters {
  CsrWriter self;
  std::vector<CsrWriter> edges;
};

// Refines one group layer by layer.
class GroupRefiner {
 public:
  GroupRefiner(const Group& group, std::span<const RefinedSlate> slates, int hash_bits)
      : graph_(*group.graph),
        group_(group),
        slates_(slates),
        hash_bits_(hash_bits),
        partitions_(group.lanes) {}

  // Layer 0: colours by (node's class, state's class). Appends the rows' nodes and states to the
  // plan.
  void start(std::span<const Offsets> offsets, Plan& plan);
  // Next layer; rows of the layer before begin at `base` in the plan. Appends rows to the writers.
  void advance(int layer, std::int64_t base, StepWriters& writers);
  std::int64_t rows(int layer) const {
    return current_.rows + static_cast<std::int64_t>(graph_.fixed(layer).node.size());
  }
  void read_out(std::int64_t base, bool mean, std::vector<Csr>& pool,
                std::vector<Csr>& common) const;

 private:
  void label_lanes(std::size_t config_index, std::vector<std::int32_t>& labels,
                   std::vector<std::int32_t>& states, std::span<const Offsets> offsets) const;
  std::uint32_t colour_of(std::int32_t node, std::int32_t lane) const;
  void make_key(int layer, std::int32_t node, std::int32_t lane);
  void write_row(int layer, std::int64_t base, std::span<const std::uint32_t> key,
                 StepWriters& writers);
  void write_static(int layer, std::int64_t base, StepWriters& writers);
  std::int32_t row_of(std::uint32_t colour, std::int64_t base) const {
    return to_index32(base + (colour & kStatic ? current_.rows + (colour & ~kStatic) : colour));
  }

  const RefinedGraph& graph_;
  const Group& group_;
  std::span<const RefinedSlate> slates_;
  int hash_bits_;
  LanePartitions partitions_;
  int layer_ = 0;
  Layer current_;
  std::vector<std::uint32_t> key_;
  std::vector<std::int32_t> sources_;
};

// Class of the state, and the state's row in the plan, of every lane at one configurable node.
void GroupRefiner::label_lanes(std::size_t config_index, std::vector<std::int32_t>& labels,
                               std::vector<std::int32_t>& states,
                               std::span<const Offsets> offsets) const {
  const std::size_t width = std::max<std::size_t>(graph_.config_nodes().size(), 1);
  labels.clear();
  states.clear();
  for (const std::size_t s : group_.slates) {
    for (std::int64_t k = 0; k < slates_[s].configs; ++k) {
      const std::int32_t state = slates_[s].states[k * width + config_index];
      labels.push_back(slates_[s].state_class[state]);
      states.push_back(to_index32(offsets[s].state + state));
    }
  }
}

void GroupRefiner::start(std::span<const Offsets> offsets, Plan& plan) {
  current_.of_node.resize(graph_.nodes());
  ColourTable table(hash_bits_);
  std::vector<std::int32_t> labels, states, index_of(graph_.nodes(), 0);
  const std::vector<std::int32_t>& config_nodes = graph_.config_nodes();
  for (std::size_t j = 0; j < config_nodes.size(); ++j)
    index_of[config_nodes[j]] = static_cast<std::int32_t>(j);
  const bool everywhere = config_nodes.empty();
  std::int32_t partition = 0;
  for (const std::int32_t node : graph_.reached(0)) {
    if (!everywhere || labels.empty()) {
      label_lanes(index_of[node], labels, states, offsets);
      partition = partitions_.of_labels(labels);
    }
    current_.of_node[node] = {partition, static_cast<std::int64_t>(current_.colours.size())};
    for (const std::int32_t lane : partitions_.first_lane(partition)) {
      bool fresh = false;
      const std::uint32_t key[] = {static_cast<std::uint32_t>(graph_.node_class()[node]),
                                   static_cast<std::uint32_t>(labels[lane])};
      current_.colours.push_back(table.colour(key, fresh));
      if (!fresh) continue;
      plan.node.push_back(to_index32(group_.first_node + node));
      plan.state.push_back(states[lane]);
    }
  }
  current_.rows = table.size();
  for (const std::int32_t node : graph_.fixed(0).node) {
    plan.node.push_back(to_index32(group_.first_node + node));
    plan.state.push_back(-1);
  }
}

std::uint32_t GroupRefiner::colour_of(std::int32_t node, std::int32_t lane) const {
  const std::int32_t fixed = graph_.fixed(layer_).colour[node];
  if (fixed >= 0) return kStatic | static_cast<std::uint32_t>(fixed);
  const NodeColours& colours = current_.of_node[node];
  return current_.colours[colours.begin + partitions_.class_of_lane(colours.partition)[lane]];
}

// Own colour, then for each edge set the number of neighbours and their colours, sorted.
void GroupRefiner::make_key(int layer, std::int32_t node, std::int32_t lane) {
  key_.clear();
  key_.push_back(colour_of(node, lane));
  for (const EdgeDirection direction : graph_.shape().layers[layer].directions) {
    const auto sources = graph_.adjacency(direction).of(node);
    key_.push_back(static_cast<std::uint32_t>(sources.size()));
    const auto first = static_cast<std::ptrdiff_t>(key_.size());
    for (const std::int32_t source : sources) key_.push_back(colour_of(source, lane));
    std::sort(key_.begin() + first, key_.end());
  }
}

void GroupRefiner::write_row(int layer, std::int64_t base, std::span<const std::uint32_t> key,
                             StepWriters& writers) {
  const LayerShape& shape = graph_.shape().layers[layer];
  sources_.assign(1, row_of(key[0], base));
  writers.self.add_row(sources_, 1);
  std::size_t at = 1;
  for (std::size_t d = 0; d < shape.directions.size(); ++d) {
    const std::size_t degree = key[at++];
    sources_.clear();
    for (std::size_t i = 0; i < degree; ++i) sources_.push_back(row_of(key[at++], base));
    writers.edges[d].add_row(sources_, unit_weight(shape.aggregation, degree));
  }
}

void GroupRefiner::write_static(int layer, std::int64_t base, StepWriters& writers) {
  for (const std::int32_t node : graph_.fixed(layer + 1).node) {
    make_key(layer, node, 0);
    write_row(layer, base, key_, writers);
  }
}

void GroupRefiner::advance(int layer, std::int64_t base, StepWriters& writers) {
  layer_ = layer;
  Layer next;
  next.of_node.resize(graph_.nodes());
  ColourTable table(hash_bits_);
  const auto& reached_before = graph_.fixed(layer).colour;
  for (const std::int32_t node : graph_.reached(layer + 1)) {
    std::int32_t partition = reached_before[node] < 0 ? current_.of_node[node].partition : 0;
    for (const EdgeDirection direction : graph_.shape().layers[layer].directions) {
      for (const std::int32_t source : graph_.adjacency(direction).of(node)) {
        if (reached_before[source] < 0) {
          partition = partitions_.refine(partition, current_.of_node[source].partition);
        }
      }
    }
    next.of_node[node] = {partition, static_cast<std::int64_t>(next.colours.size())};
    const std::int32_t classes = partitions_.classes(partition);
    for (std::int32_t c = 0; c < classes; ++c) {
      make_key(layer, node, partitions_.first_lane(partition)[c]);
      bool fresh = false;
      next.colours.push_back(table.colour(key_, fresh));
      if (fresh) write_row(layer, base, key_, writers);
    }
  }
  next.rows = table.size();
  write_static(layer, base, writers);
  current_ = std::move(next);
  layer_ = layer + 1;
}

// Nodes whose lanes all agree are common to all configurations; the others are counted lane by
// lane.
void GroupRefiner::read_out(std::int64_t base, bool mean, std::vector<Csr>& pool,
                            std::vector<Csr>& common) const {
  const double unit = mean ? 1.0 / static_cast<double>(graph_.nodes()) : 1.0;
  std::vector<std::int32_t> shared, varying;
  for (std::int32_t node = 0; node < graph_.nodes(); ++node) {
    const bool fixed = graph_.fixed(layer_).colour[node] >= 0;
    if (fixed || current_.of_node[node].partition == 0) {
      shared.push_back(row_of(colour_of(node, 0), base));
    } else {
      varying.push_back(node);
    }
  }
  std::sort(shared.begin(), shared.end());
  CsrWriter writer;
  writer.add_row(shared, unit);
  const Csr shared_row = writer.take();
  std::int32_t lane = 0;
  std::vector<std::int32_t> rows;
  for (const std::size_t s : group_.slates) {
    common[s] = shared_row;
    CsrWriter slate;
    for (std::int64_t k = 0; k < slates_[s].configs; ++k, ++lane) {
      rows.clear();
      for (const std::int32_t node : varying) rows.push_back(row_of(colour_of(node, lane), base));
      std::sort(rows.begin(), rows.end());
      slate.add_row(rows, unit);
    }
    pool[s] = slate.take();
  }
}

std::vector<Group> group_by_graph(std::span<const RefinedSlate> slates) {
  std::vector<Group> groups;
  for (std::size_t s = 0; s < slates.size(); ++s) {
    auto group = std::find_if(groups.begin(), groups.end(),
                              [&](const Group& g) { return g.graph == slates[s].graph; });
    if (group == groups.end()) group = groups.insert(group, Group{slates[s].graph, {}, 0, 0});
    group->slates.push_back(s);
    group->lanes += slates[s].configs;
  }
  return groups;
}

std::vector<Offsets> number_through(std::span<const RefinedSlate> slates, Plan& plan) {
  std::vector<Offsets> offsets;
  for (const RefinedSlate& slate : slates) {
    const std::size_t width = std::max<std::size_t>(slate.graph->config_nodes().size(), 1);
    if (slate.configs <= 0 || slate.states.size() != slate.configs * width ||
        static_cast<std::int64_t>(slate.state_class.size()) != slate.state_rows) {
      throw Error(ErrorKind::failed,
                  "cannot plan a slate: states or their classes have the wrong length");
    }
    offsets.push_back({plan.nodes, plan.states, plan.configs});
    plan.nodes += slate.graph->nodes();
    plan.states += slate.state_rows;
    plan.configs += slate.configs;
  }
  return offsets;
}

Csr concatenate(const std::vector<Csr>& parts) {
  Csr all{{0}, {}, {}};
  for (const Csr& part : parts) {
    const std::int64_t base = all.entries();
    for (std::int64_t i = 1; i <= part.rows(); ++i) all.begin.push_back(base + part.begin[i]);
    all.source.insert(all.source.end(), part.source.begin(), part.source.end());
    all.weight.insert(all.weight.end(), part.weight.begin(), part.weight.end());
  }
  return all;
}

}  // namespace

Plan build_refined_plan(std::span<const RefinedSlate> slates, int hash_bits) {
  Plan plan;
  const std::vector<Offsets> offsets = number_through(slates, plan);
  std::vector<Group> groups = group_by_graph(slates);
  std::vector<GroupRefiner> refiners;
  refiners.reserve(groups.size());
  for (Group& group : groups) {
    group.first_node = offsets[group.slates[0]].node;
    refiners.emplace_back(group, slates, hash_bits).start(offsets, plan);
  }
  plan.rows_of_node = rows_of(plan.node, plan.nodes);
  plan.rows_of_state = rows_of(plan.state, plan.states);

  const PlanShape& shape = slates[0].graph->shape();
  std::int64_t rows_in = plan.first_rows();
  for (int layer = 0; layer < static_cast<int>(shape.layers.size()); ++layer) {
    StepWriters writers;
    writers.edges.resize(shape.layers[layer].directions.size());
    std::int64_t base = 0, rows_out = 0;
    for (GroupRefiner& refiner : refiners) {
      const std::int64_t before = refiner.rows(layer);
      refiner.advance(layer, base, writers);
      base += before;
      rows_out += refiner.rows(layer + 1);
    }
    auto step = std::make_shared<Step>();
    step->rows_in = rows_in;
    step->rows_out = rows_out;
    step->self = finish(writers.self, rows_in);
    for (CsrWriter& writer : writers.edges) step->edges.push_back(finish(writer, rows_in));
    plan.steps.push_back(std::move(step));
    rows_in = rows_out;
  }

  std::vector<Csr> pool(slates.size()), common(slates.size());
  std::int64_t base = 0;
  for (const GroupRefiner& refiner : refiners) {
    refiner.read_out(base, shape.mean_readout, pool, common);
    base += refiner.rows(static_cast<int>(shape.layers.size()));
  }
  Readout& readout = plan.readout;
  readout.pool = concatenate(pool);
  readout.transpose = transpose(readout.pool, rows_in);
  readout.common = concatenate(common);
  readout.common_transpose = transpose(readout.common, rows_in);
  for (std::size_t s = 0; s < slates.size(); ++s) {
    readout.slate_of_config.insert(readout.slate_of_config.end(), slates[s].configs,
                                   static_cast<std::int32_t>(s));
  }
  return plan;
}

}  // namespace tpudist
