#include "models/plans/refined_plan.hpp"

#include <algorithm>
#include <numeric>

#include "core/error.hpp"
#include "models/plans/csr.hpp"
#include "models/plans/group_refiner.hpp"

namespace tpudist {
namespace {

std::vector<SlateGroup> group_by_graph(std::span<const RefinedSlate> slates,
                                       std::span<const SlateOffsets> offsets) {
  std::vector<SlateGroup> groups;
  for (std::size_t s = 0; s < slates.size(); ++s) {
    auto group = std::find_if(groups.begin(), groups.end(),
                              [&](const SlateGroup& g) { return g.graph == slates[s].graph; });
    if (group == groups.end()) {
      group = groups.insert(group, SlateGroup{slates[s].graph, {}, 0, offsets[s].node});
    }
    group->slates.push_back(s);
    group->lanes += slates[s].configs;
  }
  return groups;
}

std::vector<SlateOffsets> number_through(std::span<const RefinedSlate> slates, Plan& plan) {
  std::vector<SlateOffsets> offsets;
  for (const RefinedSlate& slate : slates) {
    const std::size_t width = std::max<std::size_t>(slate.graph->config_nodes().size(), 1);
    if (slate.configs <= 0 || slate.states.size() != slate.configs * width ||
        static_cast<std::int64_t>(slate.state_class.size()) != slate.state_rows) {
      throw Error(ErrorKind::failed,
                  "cannot plan a slate: states or their classes have the wrong length");
    }
    const std::int64_t begin = slate.input_begin < 0 ? plan.nodes : slate.input_begin;
    offsets.push_back({begin, plan.states, plan.configs});
    plan.nodes = std::max(plan.nodes, begin + slate.graph->classes());
    plan.states += slate.state_rows;
    plan.configs += slate.configs;
  }
  return offsets;
}

RawPlan refine(std::span<const SlateGroup> groups, std::span<const RefinedSlate> slates,
               std::span<const SlateOffsets> offsets, int hash_bits) {
  RawPlan raw;
  std::vector<GroupRefiner> refiners;
  refiners.reserve(groups.size());
  for (const SlateGroup& group : groups) {
    refiners.emplace_back(group, slates, hash_bits).start(offsets, raw);
  }
  const PlanShape& shape = groups[0].graph->shape();
  for (std::size_t layer = 0; layer < shape.layers.size(); ++layer) {
    RawStep& step = raw.steps.emplace_back();
    step.group.resize(shape.layers[layer].directions.size());
    step.groups.resize(shape.layers[layer].directions.size());
    std::int64_t base = 0;
    for (GroupRefiner& refiner : refiners) {
      const std::int64_t before = refiner.rows();
      refiner.advance(static_cast<int>(layer), base, step);
      base += before;
    }
  }
  std::int64_t base = 0;
  for (const GroupRefiner& refiner : refiners) {
    raw.pools.push_back(refiner.read_out(base));
    base += refiner.rows();
  }
  return raw;
}

// How much depends on a thing.
enum Need : char { kNothing, kNeeded, kPastOfNeeded };

// A new order: pasts of needed rows, then the other needed things, then the rest, each part in the
// order found.
struct Order {
  std::vector<std::int32_t> place;  // [things] new number of each
  std::vector<std::int32_t> found;  // the inverse
  std::int64_t pasts = 0, needed = 0;
};

Order order_by(const std::vector<Need>& need) {
  Order order;
  const auto size = static_cast<std::int64_t>(need.size());
  std::int32_t count[3] = {};
  for (const Need n : need) ++count[n];
  order.pasts = count[kPastOfNeeded];
  order.needed = order.pasts + count[kNeeded];
  std::int32_t next[3] = {to_index32(order.needed), count[kPastOfNeeded], 0};
  order.place.resize(size);
  order.found.resize(size);
  for (std::int64_t i = 0; i < size; ++i) {
    const std::int32_t place = next[need[i]]++;
    order.place[i] = place;
    order.found[place] = static_cast<std::int32_t>(i);
  }
  return order;
}

// The orders of the rows before each step and behind the last one, and of each step's groups.
struct Orders {
  std::vector<Order> rows;                 // [depth + 1]
  std::vector<std::vector<Order>> groups;  // [depth][edge sets]
};

// What the readout's differences depend on, from the top down.
Orders order_rows(const RawPlan& raw) {
  Orders orders;
  const std::size_t depth = raw.steps.size();
  orders.rows.resize(depth + 1);
  orders.groups.resize(depth);
  const auto rows_at = [&](std::size_t layer) {
    return layer == 0 ? raw.node.size() : raw.steps[layer - 1].self.size();
  };
  std::vector<Need> need(rows_at(depth), kNothing);
  for (const RawPlan::Pool& pool : raw.pools) {
    for (const std::int32_t row : pool.cells.row) need[row] = kNeeded;
  }
  for (std::size_t layer = depth; layer-- > 0;) {
    const RawStep& step = raw.steps[layer];
    std::vector<Need> below(rows_at(layer), kNothing);
    for (std::size_t set = 0; set < step.group.size(); ++set) {
      std::vector<Need> groups(step.groups[set].size(), kNothing);
      for (std::size_t row = 0; row < need.size(); ++row) {
        if (need[row]) groups[step.group[set][row]] = kNeeded;
      }
      for (std::int64_t g = 0; g < step.groups[set].size(); ++g) {
        if (!groups[g]) continue;
        for (const std::int32_t row : step.groups[set].of(g)) below[row] = kNeeded;
      }
      orders.groups[layer].push_back(order_by(groups));
    }
    for (std::size_t row = 0; row < need.size(); ++row) {
      if (need[row]) below[step.self[row]] = kPastOfNeeded;
    }
    orders.rows[layer + 1] = order_by(need);
    need = std::move(below);
  }
  orders.rows[0] = order_by(need);
  return orders;
}

// Values in the new order of their rows, themselves renumbered.
std::vector<std::int32_t> reorder(std::span<const std::int32_t> values, const Order& rows,
                                  const Order* things) {
  std::vector<std::int32_t> result(values.size());
  for (std::size_t i = 0; i < result.size(); ++i) {
    const std::int32_t value = values[rows.found[i]];
    result[i] = things && value >= 0 ? things->place[value] : value;
  }
  return result;
}

// Appends one matrix row from a list of rows with repetitions: each counts `unit`.
void append_row(std::span<const std::int32_t> list, const Order& rows, double unit,
                std::vector<std::int32_t>& scratch, Csr& csr) {
  if (list.size() == 1 || (list.size() == 2 && list[0] != list[1])) {
    const std::int32_t first = rows.place[list.front()], second = rows.place[list.back()];
    csr.source.push_back(std::min(first, second));
    if (list.size() == 2) csr.source.push_back(std::max(first, second));
    csr.weight.insert(csr.weight.end(), list.size(), static_cast<float>(unit));
  } else {
    scratch.clear();
    for (const std::int32_t row : list) scratch.push_back(rows.place[row]);
    std::sort(scratch.begin(), scratch.end());
    for (std::size_t i = 0; i < scratch.size();) {
      std::size_t end = i;
      while (end < scratch.size() && scratch[end] == scratch[i]) ++end;
      csr.source.push_back(scratch[i]);
      csr.weight.push_back(static_cast<float>(static_cast<double>(end - i) * unit));
      i = end;
    }
  }
  csr.begin.push_back(csr.entries());
}

Selection select(std::span<const std::int32_t> of, const Order& rows, const Order& things) {
  Selection selection;
  selection.of = reorder(of, rows, &things);
  selection.rows = rows_of(selection.of, static_cast<std::int64_t>(things.place.size()));
  return selection;
}

EdgeSet make_edge_set(const RowLists& lists, const Order& groups, const Order& rows_in,
                      Aggregation aggregation) {
  EdgeSet set;
  Csr& in = set.sum.in;
  in.begin.reserve(lists.size() + 1);
  in.source.reserve(lists.row.size());
  in.weight.reserve(lists.row.size());
  in.begin.push_back(0);
  std::vector<std::int32_t> scratch;
  for (const std::int32_t found : groups.found) {
    const auto list = lists.of(found);
    const bool mean = aggregation == Aggregation::mean && !list.empty();
    append_row(list, rows_in, mean ? 1.0 / static_cast<double>(list.size()) : 1.0, scratch, in);
  }
  set.sum.out = transpose(in, static_cast<std::int64_t>(rows_in.place.size()));
  return set;
}

std::shared_ptr<const Step> make_step(const RawStep& raw, const LayerShape& shape,
                                      const Order& rows_in, const Order& rows_out,
                                      std::span<const Order> groups) {
  auto step = std::make_shared<Step>();
  step->rows_in = static_cast<std::int64_t>(rows_in.place.size());
  step->rows_out = static_cast<std::int64_t>(rows_out.place.size());
  step->self = select(raw.self, rows_out, rows_in);
  for (std::size_t set = 0; set < raw.group.size(); ++set) {
    EdgeSet& edges = step->edges.emplace_back(
        make_edge_set(raw.groups[set], groups[set], rows_in, shape.aggregation));
    edges.group = select(raw.group[set], rows_out, groups[set]);
  }
  return step;
}

// Pools of the groups, put back into the order of the slates.
Readout make_readout(const RawPlan& raw, std::span<const SlateGroup> groups,
                     std::span<const RefinedSlate> slates, const Order& rows, bool mean) {
  Readout readout;
  const auto row_count = static_cast<std::int64_t>(rows.place.size());
  std::vector<std::int32_t> scratch;
  struct Place {
    std::size_t group;
    std::int64_t lane, cell;
  };
  std::vector<Place> places(slates.size());
  std::int64_t cell = 0;
  readout.cells.in.begin.push_back(0);
  for (std::size_t g = 0; g < groups.size(); ++g) {
    const double unit = mean ? 1.0 / static_cast<double>(groups[g].graph->nodes()) : 1.0;
    const RowLists& cells = raw.pools[g].cells;
    for (std::int64_t c = 0; c < cells.size(); ++c) {
      append_row(cells.of(c), rows, unit, scratch, readout.cells.in);
    }
    std::int64_t lane = 0;
    for (const std::size_t s : groups[g].slates) {
      places[s] = {g, lane, cell};
      lane += slates[s].configs;
    }
    cell += cells.size();
  }
  readout.pool.in.begin.push_back(0);
  readout.common.in.begin.push_back(0);
  for (std::size_t s = 0; s < slates.size(); ++s) {
    const RawPlan::Pool& pool = raw.pools[places[s].group];
    const auto nodes = static_cast<double>(slates[s].graph->nodes());
    for (std::int64_t k = 0; k < slates[s].configs; ++k) {
      for (const std::int32_t c : pool.cells_of_lane.of(places[s].lane + k)) {
        readout.pool.in.source.push_back(to_index32(places[s].cell + c));
      }
      readout.pool.in.begin.push_back(readout.pool.in.entries());
      readout.slate_of_config.push_back(static_cast<std::int32_t>(s));
    }
    append_row(pool.common.of(0), rows, mean ? 1.0 / nodes : 1.0, scratch, readout.common.in);
  }
  readout.cells.out = transpose(readout.cells.in, row_count);
  readout.pool.out = transpose(readout.pool.in, cell);
  readout.common.out = transpose(readout.common.in, row_count);
  return readout;
}

}  // namespace

Plan build_refined_plan(std::span<const RefinedSlate> slates, int hash_bits) {
  Plan plan;
  const std::vector<SlateOffsets> offsets = number_through(slates, plan);
  const std::vector<SlateGroup> groups = group_by_graph(slates, offsets);
  const RawPlan raw = refine(groups, slates, offsets, hash_bits);
  const Orders orders = order_rows(raw);
  const PlanShape& shape = slates[0].graph->shape();
  plan.needed = orders.rows[0].needed;
  plan.node = reorder(raw.node, orders.rows[0], nullptr);
  plan.state = reorder(raw.state, orders.rows[0], nullptr);
  plan.rows_of_node = rows_of(plan.node, plan.nodes);
  plan.rows_of_state = rows_of(plan.state, plan.states);
  for (std::size_t i = 0; i < raw.steps.size(); ++i) {
    plan.steps.push_back(make_step(raw.steps[i], shape.layers[i], orders.rows[i],
                                   orders.rows[i + 1], orders.groups[i]));
    NeededPart& needed = plan.needed_part.emplace_back();
    needed.rows = orders.rows[i + 1].needed;
    needed.pasts = orders.rows[i].pasts;
    for (const Order& groups : orders.groups[i]) needed.groups.push_back(groups.needed);
  }
  plan.readout = make_readout(raw, groups, slates, orders.rows.back(), shape.mean_readout);
  return plan;
}

}  // namespace tpudist
