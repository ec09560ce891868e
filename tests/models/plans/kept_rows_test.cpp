// What a plan with kept rows computes again, and what is forgotten.

#include "models/plans/kept_rows.hpp"

#include <gtest/gtest.h>

#include <numeric>
#include <set>

#include "models/plans/build_plan.hpp"
#include "tests/models/plans/slate_case.hpp"
#include "tests/support/contracted_edges.hpp"

namespace tpudist {
namespace {

// A random network along edges, and a configuration of a random graph in which all nodes differ.
struct KeptCase {
  explicit KeptCase(std::uint64_t key) : random(key) {
    shape.early_join = random.below(4) > 0;
    for (std::uint64_t layers = 1 + random.below(4); layers > 0; --layers) {
      LayerShape& layer = shape.layers.emplace_back();
      for (int kind = 0; kind < 4; ++kind) {
        if (random.below(3) == 0) layer.edge_kinds.push_back(static_cast<EdgeKind>(kind));
      }
      layer.joins_states = random.below(3) == 0;
    }
    slate = test::random_slate(key, 60, 1, 9, 1);
    for (std::int32_t row = 0; row < slate.state_rows; ++row)
      hashes.push_back(ContentHash::of_number(row));
    std::vector<std::int32_t> classes(60);
    std::iota(classes.begin(), classes.end(), 0);
    graph.emplace(60, slate.edges, slate.config_nodes, std::move(classes), shape,
                  test::contracted_edges(60, slate.edges, slate.config_nodes));
  }

  KeptRows rows(std::uint64_t bytes) const {
    return KeptRows(std::vector<std::int64_t>(shape.layers.size() + 2, 1), 2, bytes);
  }
  // Gives a configurable node another state. Returns the node.
  std::int32_t change() {
    const std::uint64_t j = random.below(slate.states.size());
    std::int32_t& state = slate.states[j];
    state = state / 3 * 3 + (state + 1) % 3;
    return slate.config_nodes[j];
  }
  // The numbers of rows that a plan of the configuration computes at each depth, and of cells.
  std::vector<std::size_t> computed(KeptRows& rows) const {
    KeptUse use{&rows, {}};
    const RefinedSlate view{&*graph, 1, slate.states, {}, slate.state_rows};
    const Plan plan = build_kept_plan(view, hashes, use);
    std::vector<std::size_t> counts{plan.node.size()};
    for (const auto& layer : plan.layers) counts.push_back(layer->self.index.size());
    counts.push_back(static_cast<std::size_t>(plan.readout.cells.forward.rows()));
    for (std::size_t depth = 0; depth < counts.size(); ++depth)
      EXPECT_EQ(use.levels[depth].computed.size(), counts[depth]);
    return counts;
  }
  // The same, if the state of one node is new.
  std::vector<std::size_t> cone(std::int32_t node, KeptRows& rows) const {
    std::set<std::int32_t> changed;
    if (shape.early_join) changed.insert(node);
    std::vector<std::size_t> counts{changed.size()};
    for (const LayerShape& layer : shape.layers) {
      const std::set<std::int32_t> before = changed;
      if (layer.joins_states) changed.insert(node);
      for (const EdgeKind kind : layer.edge_kinds) {
        for (std::int32_t v = 0; v < slate.nodes; ++v) {
          for (const std::int32_t source : graph->adjacency(kind).of(v))
            if (before.contains(source)) changed.insert(v);
        }
      }
      counts.push_back(changed.size());
    }
    counts.push_back(std::ranges::count_if(rows.contents().cells(), [&](const auto& cell) {
      return std::ranges::any_of(cell, [&](std::int32_t v) { return changed.contains(v); });
    }));
    return counts;
  }

  CounterRng random;
  PlanShape shape;
  test::SlateCase slate;
  std::vector<ContentHash> hashes;
  std::optional<RefinedGraph> graph;
};

TEST(KeptRows, OnlyRowsOfNewContentAreComputed) {
  for (std::uint64_t key = 1; key <= 50; ++key) {
    SCOPED_TRACE(key);
    KeptCase made(key);
    KeptRows rows = made.rows(1 << 20);
    made.computed(rows);
    rows.finish();
    const std::vector<std::size_t> none(made.shape.layers.size() + 2);
    EXPECT_EQ(made.computed(rows), none);
    rows.finish();
    const std::int32_t node = made.change();
    EXPECT_EQ(made.computed(rows), made.cone(node, rows));
    rows.finish();
    EXPECT_EQ(made.computed(rows), none);
  }
}

TEST(KeptRows, AreForgottenBeyondTheLimitAndAfterAPlanThatWasNotComputed) {
  const KeptCase made(1);
  const std::uint64_t contents = RowContents::bytes(made.shape, made.slate.nodes);
  KeptRows rows = made.rows(contents + 1000);
  const std::vector<std::size_t> all = made.computed(rows);
  rows.finish();
  EXPECT_GT(rows.bytes(*made.graph), contents + 1000);
  rows.start(*made.graph);
  EXPECT_EQ(rows.bytes(*made.graph), contents);
  rows.finish();
  EXPECT_EQ(made.computed(rows), all);
  KeptRows large = made.rows(1 << 20);
  made.computed(large);
  EXPECT_EQ(made.computed(large), all);
}

TEST(RowContents, DependOnTheConfigurationAlone) {
  for (std::uint64_t key = 1; key <= 30; ++key) {
    SCOPED_TRACE(key);
    KeptCase made(key);
    RowContents walked(*made.graph);
    for (int step = 0; step < 20; ++step) {
      for (std::uint64_t changes = made.random.below(4); changes > 0; --changes) made.change();
      walked.change_to(*made.graph, made.slate.states, made.hashes);
    }
    RowContents fresh(*made.graph);
    fresh.change_to(*made.graph, made.slate.states, made.hashes);
    for (std::int32_t v = 0; v < made.slate.nodes; ++v) {
      EXPECT_EQ(walked.state_row(v), fresh.state_row(v));
      for (std::size_t depth = 0; depth <= made.shape.layers.size(); ++depth)
        EXPECT_EQ(walked.row(depth, v), fresh.row(depth, v));
      for (std::size_t layer = 0; layer < made.shape.layers.size(); ++layer) {
        for (std::size_t set = 0; set < made.shape.layers[layer].edge_kinds.size(); ++set)
          EXPECT_EQ(walked.around(layer, set, v), fresh.around(layer, set, v));
      }
    }
  }
}

}  // namespace
}  // namespace tpudist
