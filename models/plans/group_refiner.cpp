#include "models/plans/group_refiner.hpp"

#include <algorithm>

#include "models/plans/csr.hpp"

namespace tpudist {

GroupRefiner::GroupRefiner(const SlateGroup& group, std::span<const RefinedSlate> slates,
                           int hash_bits)
    : graph_(*group.graph),
      group_(group),
      slates_(slates),
      hash_bits_(hash_bits),
      partitions_(group.lanes),
      of_node_(graph_.nodes()) {}

// Class of the state, and the state's row in the plan, of every lane at one configurable node.
void GroupRefiner::label_lanes(std::size_t config_index, std::vector<std::int32_t>& labels,
                               std::vector<std::int32_t>& states,
                               std::span<const SlateOffsets> offsets) const {
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

void GroupRefiner::start(std::span<const SlateOffsets> offsets, RawPlan& plan) {
  PairTable table(hash_bits_);
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
    of_node_[node] = {partition, static_cast<std::int64_t>(colours_.size())};
    for (const std::int32_t lane : partitions_.first_lane(partition)) {
      bool fresh = false;
      colours_.push_back(table.number(graph_.node_class()[node], labels[lane], fresh));
      if (!fresh) continue;
      plan.node.push_back(to_index32(group_.first_node + graph_.node_class()[node]));
      plan.state.push_back(states[lane]);
    }
  }
  reached_rows_ = table.size();
  for (const std::int32_t node : graph_.fixed(0).node) {
    plan.node.push_back(to_index32(group_.first_node + graph_.node_class()[node]));
    plan.state.push_back(-1);
  }
}

// The static groups come first.
void GroupRefiner::start_groups(int layer, std::size_t set, std::int64_t base, RowLists& groups) {
  first_group_[set] = groups.size();
  single_[set].assign(rows(), -1);
  several_[set] = ColourTable(hash_bits_);
  group_of_colour_[set].clear();
  const StaticGroups& fixed = graph_.fixed_groups(layer, set);
  for (std::int64_t g = 0; g < fixed.size(); ++g) {
    for (std::int64_t i = fixed.begin[g]; i < fixed.begin[g + 1]; ++i) {
      groups.row.push_back(to_index32(base + reached_rows_ + fixed.source[i]));
    }
    groups.close();
  }
}

// Group of the sorted rows in `key_`, made where it is new.
std::int32_t GroupRefiner::group_of_rows(std::size_t set, std::int64_t base, RowLists& groups) {
  const auto make = [&] {
    for (const std::uint32_t row : key_) groups.row.push_back(to_index32(base + row));
    groups.close();
    return to_index32(groups.size() - 1);
  };
  if (key_.size() == 1) {
    std::int32_t& group = single_[set][key_[0]];
    if (group < 0) group = make();
    return group;
  }
  bool fresh = false;
  const std::int32_t colour = several_[set].colour(key_, fresh);
  if (fresh) group_of_colour_[set].push_back(make());
  return group_of_colour_[set][colour];
}

void GroupRefiner::group_neighbours(int layer, std::size_t set, std::int32_t node,
                                    std::int64_t base, RowLists& groups, NodeGroups& result) {
  const std::int32_t fixed = graph_.fixed_groups(layer, set).of_node[node];
  result.partition = 0;
  result.group.clear();
  if (fixed >= 0) {
    result.group.push_back(to_index32(first_group_[set] + fixed));
    return;
  }
  const auto sources = graph_.adjacency(graph_.shape().layers[layer].directions[set]).of(node);
  for (const std::int32_t source : sources) {
    if (graph_.fixed(layer).colour[source] < 0) {
      result.partition = partitions_.refine(result.partition, of_node_[source].partition);
    }
  }
  for (const std::int32_t lane : partitions_.first_lane(result.partition)) {
    key_.clear();
    for (const std::int32_t source : sources) {
      key_.push_back(static_cast<std::uint32_t>(row_of(source, lane)));
    }
    if (key_.size() == 2) {
      if (key_[0] > key_[1]) std::swap(key_[0], key_[1]);
    } else if (key_.size() > 2) {
      std::sort(key_.begin(), key_.end());
    }
    result.group.push_back(group_of_rows(set, base, groups));
  }
}

void GroupRefiner::advance(int layer, std::int64_t base, RawStep& step) {
  layer_ = layer;
  const std::size_t sets = graph_.shape().layers[layer].directions.size();
  first_group_.resize(sets);
  single_.resize(sets);
  several_.resize(sets);
  group_of_colour_.resize(sets);
  for (std::size_t set = 0; set < sets; ++set) start_groups(layer, set, base, step.groups[set]);

  std::vector<NodeColours> next_of_node(graph_.nodes());
  std::vector<std::int32_t> next_colours;
  next_colours.reserve(2 * colours_.size());
  std::vector<PairTable> tables(std::max<std::size_t>(sets, 1),
                                PairTable(hash_bits_, 2 * colours_.size()));
  std::vector<NodeGroups> around(sets);
  for (const std::int32_t node : graph_.reached(layer + 1)) {
    const bool fixed = graph_.fixed(layer).colour[node] >= 0;
    std::int32_t partition = fixed ? 0 : of_node_[node].partition;
    for (std::size_t set = 0; set < sets; ++set) {
      group_neighbours(layer, set, node, base, step.groups[set], around[set]);
      partition = partitions_.refine(partition, around[set].partition);
    }
    next_of_node[node] = {partition, static_cast<std::int64_t>(next_colours.size())};
    for (const std::int32_t lane : partitions_.first_lane(partition)) {
      const auto group_at = [&](std::size_t set) {
        return around[set].group[partitions_.class_of_lane(around[set].partition)[lane]];
      };
      const std::int32_t own = row_of(node, lane);
      // A row is told apart by its own past and a group of each set.
      bool fresh = false;
      std::int32_t row = sets ? own : tables[0].number(own, 0, fresh);
      for (std::size_t set = 0; set < sets; ++set) {
        row = tables[set].number(row, group_at(set), fresh);
      }
      next_colours.push_back(row);
      if (!fresh) continue;
      step.self.push_back(to_index32(base + own));
      for (std::size_t set = 0; set < sets; ++set) step.group[set].push_back(group_at(set));
    }
  }
  add_static_rows(layer, base, step);
  reached_rows_ = tables.back().size();
  of_node_ = std::move(next_of_node);
  colours_ = std::move(next_colours);
  layer_ = layer + 1;
}

void GroupRefiner::add_static_rows(int layer, std::int64_t base, RawStep& step) const {
  for (const std::int32_t node : graph_.fixed(layer + 1).node) {
    step.self.push_back(to_index32(base + row_of(node, 0)));
    for (std::size_t set = 0; set < step.group.size(); ++set) {
      const std::int32_t group = graph_.fixed_groups(layer, set).of_node[node];
      step.group[set].push_back(to_index32(first_group_[set] + group));
    }
  }
}

// Nodes whose lanes all agree are common to all configurations. The others are summed in cells: one
// for each class of each partition, so that a lane takes one cell of every partition.
RawPlan::Pool GroupRefiner::read_out(std::int64_t base) const {
  RawPlan::Pool pool;
  std::vector<std::vector<std::int32_t>> nodes_of;  // of each partition met
  std::vector<std::int32_t> place, met;             // [partitions] in nodes_of; and back
  for (std::int32_t node = 0; node < graph_.nodes(); ++node) {
    const bool fixed = graph_.fixed(layer_).colour[node] >= 0;
    const std::int32_t partition = fixed ? 0 : of_node_[node].partition;
    if (partition == 0) {
      pool.common.row.push_back(to_index32(base + row_of(node, 0)));
      continue;
    }
    if (partition >= static_cast<std::int32_t>(place.size())) place.resize(partition + 1, -1);
    if (place[partition] < 0) {
      place[partition] = static_cast<std::int32_t>(met.size());
      met.push_back(partition);
      nodes_of.emplace_back();
    }
    nodes_of[place[partition]].push_back(node);
  }
  pool.common.close();
  std::vector<std::int64_t> first_cell;
  for (std::size_t p = 0; p < met.size(); ++p) {
    first_cell.push_back(pool.cells.size());
    for (std::int32_t c = 0; c < partitions_.classes(met[p]); ++c) {
      for (const std::int32_t node : nodes_of[p]) {
        pool.cells.row.push_back(to_index32(base + colours_[of_node_[node].begin + c]));
      }
      pool.cells.close();
    }
  }
  for (std::int64_t lane = 0; lane < group_.lanes; ++lane) {
    for (std::size_t p = 0; p < met.size(); ++p) {
      pool.cells_of_lane.row.push_back(
          to_index32(first_cell[p] + partitions_.class_of_lane(met[p])[lane]));
    }
    pool.cells_of_lane.close();
  }
  return pool;
}

}  // namespace tpudist
