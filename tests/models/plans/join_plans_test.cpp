#include "models/plans/join_plans.hpp"

#include <gtest/gtest.h>

#include "models/plans/build_plan.hpp"
#include "tests/models/plan_network.hpp"
#include "tests/models/plans/slate_case.hpp"

namespace tpudist {
namespace {

using test::PlanNetwork;

// Slates of three graphs, each a unit of its own; the second has a dense plan with replicas.
struct Units {
  std::vector<test::SlateCase> slates{test::random_slate(1, 12, 4, 3, 2),
                                      test::random_slate(2, 20, 3, 5, 2),
                                      test::random_slate(3, 7, 5, 2, 2)};
  PlanShape shape;
  std::vector<Plan> plans;

  Units() {
    const LayerShape layer{{EdgeKind::consumer_to_producer}, Aggregation::sum, false};
    shape.layers = {layer, layer};
    for (const test::SlateCase& slate : slates) {
      const PlanSlate view = slate.view();
      plans.push_back(build_dense_plan({&view, 1}, shape));
    }
  }
};

std::vector<double> numbers(std::int64_t count, double seed) {
  std::vector<double> values;
  for (std::int64_t i = 0; i < count; ++i)
    values.push_back(std::sin(seed + static_cast<double>(i)));
  return values;
}

// `of_unit` at the rows of a run.
void put(const std::vector<double>& of_unit, const RowRun& run, std::vector<double>& all) {
  std::copy(of_unit.begin(), of_unit.end(), all.begin() + run.begin);
}

void expect_scores_of_units(const Units& units, const std::vector<std::vector<int>>& blocks) {
  std::vector<std::vector<const Plan*>> plans;
  std::vector<const Plan*> flat;
  for (const auto& block : blocks) {
    plans.emplace_back();
    for (const int unit : block) {
      plans.back().push_back(unit < 0 ? nullptr : &units.plans[static_cast<std::size_t>(unit)]);
      flat.push_back(plans.back().back());
    }
  }
  const auto joined = join_plans(plans);
  ASSERT_TRUE(joined->units);
  const JoinedUnits& at = *joined->units;
  std::vector<double> inputs(static_cast<std::size_t>(joined->nodes)),
      states(static_cast<std::size_t>(joined->states));
  for (std::size_t run = 0; run < flat.size(); ++run) {
    if (!flat[run]) continue;
    put(numbers(flat[run]->nodes, 1 + static_cast<double>(run)), at.nodes->runs[run], inputs);
    put(numbers(flat[run]->states, 2 + static_cast<double>(run)), at.states->runs[run], states);
  }
  const std::vector<double> scores = PlanNetwork::scores(*joined, inputs, states);
  ASSERT_EQ(std::ssize(scores), joined->configs);
  for (std::size_t run = 0; run < flat.size(); ++run) {
    if (!flat[run]) continue;
    const std::vector<double> expected =
        PlanNetwork::scores(*flat[run], numbers(flat[run]->nodes, 1 + static_cast<double>(run)),
                            numbers(flat[run]->states, 2 + static_cast<double>(run)));
    const RowRun own = at.configs->runs[run];
    ASSERT_EQ(std::ssize(expected), own.count);
    for (std::int64_t k = 0; k < own.count; ++k)
      EXPECT_EQ(scores[static_cast<std::size_t>(own.begin + k)],
                expected[static_cast<std::size_t>(k)]);
  }
}

TEST(JoinPlans, EachUnitHasItsOwnScores) {
  const Units units;
  expect_scores_of_units(units, {{0}});
  expect_scores_of_units(units, {{0, 1, 2}});
  expect_scores_of_units(units, {{1, 1}});
  expect_scores_of_units(units, {{0, 1}, {2, -1}, {1, 0}});
}

TEST(JoinPlans, BlocksHaveEqualRowsAndKindsAreToldByTheirNumber) {
  const Units units;
  const auto joined = join_plans({{&units.plans[0], &units.plans[1]}, {&units.plans[2], nullptr}});
  const JoinedUnits& at = *joined->units;
  EXPECT_EQ(at.blocks, 2);
  EXPECT_EQ(at.slots, 2);
  for (const auto& kind : at.kinds) {
    EXPECT_EQ(kind->rows % (2 * JoinedUnits::kBlockRows), 0);
    EXPECT_EQ(kind->runs[2].begin, kind->rows / 2);
    EXPECT_EQ(kind->runs[3].count, 0);
    EXPECT_EQ(&at.of(kind->rows), kind.get());
    for (std::size_t run = 0; run < kind->runs.size(); ++run) {
      const std::int64_t entries = kind->rows_of_run.begin[run + 1] - kind->rows_of_run.begin[run];
      EXPECT_EQ(entries, kind->runs[run].count);
      for (std::int64_t row = 0; row < entries; ++row)
        EXPECT_EQ(kind->run_of_row[static_cast<std::size_t>(kind->runs[run].begin + row)],
                  static_cast<std::int32_t>(run));
    }
  }
  EXPECT_THROW(at.of(-1), Error);
  JoinedUnits more = at;
  const auto entries = more.kind({3, 5, 8, 0});
  EXPECT_EQ(more.kind({3, 5, 8, 0}), entries);
  EXPECT_NE(more.kind({5, 3, 8, 0})->rows, entries->rows);
  EXPECT_EQ(more.kind({3, 5, 8, 0}), entries);
  EXPECT_EQ(&more.of(entries->rows), entries.get());
  EXPECT_EQ(at.states->runs[2].count, units.plans[2].states + 1);
}

}  // namespace
}  // namespace tpudist
