#include "data/loading/slate_order.hpp"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <set>
#include <stdexcept>

#include "core/error.hpp"

namespace tpudist {
namespace {

using Rows = std::vector<std::int64_t>;

OrderOptions options(int slates, int configs, DrawMode draw = DrawMode::rows) {
  OrderOptions result;
  result.slates_per_batch = slates;
  result.configs_per_slate = configs;
  result.draw = draw;
  return result;
}

// All items of an epoch, in order.
std::vector<SlateId> epoch_items(const SlateOrder& order, std::int64_t epoch) {
  std::vector<SlateId> items;
  for (std::int64_t step = 0; step < order.steps_per_epoch(); ++step) {
    for (int i = 0; i < order.options().slates_per_batch; ++i)
      items.push_back(order.item(epoch * order.steps_per_epoch() + step, i));
  }
  return items;
}

std::vector<Rows> rows_of(const SlateOrder& order, const std::vector<SlateId>& items,
                          int member = -1) {
  std::vector<Rows> rows;
  for (const SlateId& item : items) rows.push_back(order.rows(item, member));
  return rows;
}

TEST(SlateOrder, CountsWholeSlatesAndOneShortOneForASmallGraph) {
  const SlateOrder order(options(4, 10), {100, 39, 7, 0, 10}, 1);
  EXPECT_EQ(order.slates_of(0), 10);
  EXPECT_EQ(order.slates_of(1), 3);
  EXPECT_EQ(order.slates_of(2), 1);
  EXPECT_EQ(order.slates_of(3), 0);
  EXPECT_EQ(order.slates_of(4), 1);
  EXPECT_EQ(order.slates_per_epoch(), 15);
  EXPECT_EQ(order.steps_per_epoch(), 4);
}

TEST(SlateOrder, DrawsEveryRowOnceInAnEpochButForTheLastFew) {
  const std::vector<std::int64_t> rows_per_graph{100, 39, 7, 0, 10};
  const SlateOrder order(options(4, 10), rows_per_graph, 1);
  for (std::int64_t epoch = 0; epoch < 3; ++epoch) {
    std::map<int, std::set<std::int64_t>> seen;
    for (const SlateId& item : epoch_items(order, epoch)) {
      EXPECT_EQ(item.epoch, epoch);
      if (item.weight == 0) continue;
      for (const std::int64_t row : order.rows(item)) {
        EXPECT_GE(row, 0);
        EXPECT_LT(row, rows_per_graph[item.graph]);
        EXPECT_TRUE(seen[item.graph].insert(row).second) << "row " << row << " twice";
      }
    }
    EXPECT_EQ(seen[0].size(), 100u);
    EXPECT_EQ(seen[1].size(), 30u);  // nine wait for another epoch
    EXPECT_EQ(seen[2].size(), 7u);
    EXPECT_EQ(seen[3].size(), 0u);
    EXPECT_EQ(seen[4].size(), 10u);
  }
}

TEST(SlateOrder, LetsTheRowsThatWaitedTakePartInLaterEpochs) {
  const SlateOrder order(options(1, 10), {19}, 1);
  std::set<std::int64_t> seen;
  for (std::int64_t epoch = 0; epoch < 30; ++epoch) {
    for (const auto& rows : rows_of(order, epoch_items(order, epoch)))
      seen.insert(rows.begin(), rows.end());
  }
  EXPECT_EQ(seen.size(), 19u);
}

TEST(SlateOrder, FillsTheLastBatchWithWeightZero) {
  const SlateOrder order(options(4, 10), {100, 39, 7, 0, 10}, 1);  // 15 slates, 4 steps of 4
  const auto items = epoch_items(order, 2);
  ASSERT_EQ(items.size(), 16u);
  for (int i = 0; i < 15; ++i) EXPECT_EQ(items[i].weight, 1);
  EXPECT_EQ(items[15].weight, 0);
  SlateId filling = items[15];
  filling.weight = 1;
  EXPECT_EQ(filling, items[0]);  // a slate that exists, so that it can be computed all the same
}

TEST(SlateOrder, FillsABatchThatIsLargerThanTheEpoch) {
  const SlateOrder order(options(8, 10), {20, 5}, 1);
  EXPECT_EQ(order.steps_per_epoch(), 1);
  double weight = 0;
  for (const SlateId& item : epoch_items(order, 0)) {
    weight += item.weight;
    EXPECT_FALSE(order.rows(item).empty());
  }
  EXPECT_EQ(weight, 3);
}

TEST(SlateOrder, IsAPureFunction) {
  const std::vector<std::int64_t> rows{50, 31, 8};
  const SlateOrder order(options(4, 5), rows, 99), again(options(4, 5), rows, 99);
  // Out of order, as another rank or a resumed run would ask.
  for (const std::int64_t step : {100, 3, 57, 0, 1'000'000'000}) {
    for (int i = 3; i >= 0; --i) {
      EXPECT_EQ(order.item(step, i), again.item(step, i));
      EXPECT_EQ(order.rows(order.item(step, i)), again.rows(again.item(step, i)));
    }
  }
}

TEST(SlateOrder, DependsOnSeedSelectionAndSlateSize) {
  const std::vector<std::int64_t> rows{200, 310, 80};
  const SlateOrder base(options(4, 5), rows, 99);
  OrderOptions other_seed = options(4, 5);
  other_seed.seed = 2;
  const auto items = epoch_items(base, 0);
  const auto drawn = rows_of(base, items);
  const SlateOrder seeded(other_seed, rows, 99), selected(options(4, 5), rows, 100);
  for (const SlateOrder* other : {&seeded, &selected}) {
    EXPECT_NE(epoch_items(*other, 0), items);
    EXPECT_NE(rows_of(*other, items), drawn);  // the rows of the same slates, too
  }
  const SlateId first{.graph = 0};
  EXPECT_NE(SlateOrder(options(4, 6), rows, 99).rows(first)[0], base.rows(first)[0]);
}

TEST(SlateOrder, ShufflesEveryEpochAnew) {
  const SlateOrder order(options(4, 5), {200, 310, 80}, 1);
  const auto first = epoch_items(order, 0), second = epoch_items(order, 1);
  std::vector<std::pair<int, std::int64_t>> a, b;
  for (const SlateId& item : first) a.emplace_back(item.graph, item.number);
  for (const SlateId& item : second) b.emplace_back(item.graph, item.number);
  EXPECT_NE(a, b);
  SlateId moved = first[0];
  moved.epoch = 1;
  EXPECT_NE(order.rows(first[0]), order.rows(moved));
}

TEST(SlateOrder, MixesTheGraphsOfAnEpoch) {
  const SlateOrder order(options(4, 10), {1000, 1000}, 5);
  const auto items = epoch_items(order, 0);
  const auto firsts = std::ranges::count_if(std::span(items).first(100),
                                            [](const SlateId& item) { return item.graph == 0; });
  EXPECT_GT(firsts, 25);  // 50 expected, standard deviation 3.5
  EXPECT_LT(firsts, 75);
}

TEST(SlateOrder, GivesEachMemberRowsOfItsOwnFromTheSameGraph) {
  const SlateOrder order(options(4, 10), {100, 40}, 1);
  const auto items = epoch_items(order, 0);
  std::set<std::vector<Rows>> different;
  for (int member = -1; member < 5; ++member) {
    const auto rows = rows_of(order, items, member);
    std::map<int, std::set<std::int64_t>> seen;
    for (std::size_t i = 0; i < items.size(); ++i) {
      if (items[i].weight > 0) seen[items[i].graph].insert(rows[i].begin(), rows[i].end());
    }
    EXPECT_EQ(seen[0].size(), 100u);
    EXPECT_EQ(seen[1].size(), 40u);
    different.insert(rows);
  }
  EXPECT_EQ(different.size(), 6u);
}

TEST(SlateOrder, DrawsGraphsEquallyOften) {
  const SlateOrder order(options(4, 10, DrawMode::graphs), {1000, 10, 95, 0, 3}, 1);
  // 100 + 1 + 9 + 1 slates over four graphs that have rows: 28 each.
  for (const int graph : {0, 1, 2, 4}) EXPECT_EQ(order.slates_of(graph), 28);
  EXPECT_EQ(order.slates_of(3), 0);
  EXPECT_EQ(order.slates_per_epoch(), 4 * 28);

  std::map<std::pair<int, std::int64_t>, std::set<std::int64_t>> seen;  // by graph and pass
  std::set<Rows> passes_of_a_small_graph;
  const std::int64_t slates_of_pass[] = {100, 1, 9, 0, 1};
  for (const SlateId& item : epoch_items(order, 0)) {
    const Rows rows = order.rows(item);
    EXPECT_EQ(rows.size(), item.graph == 4 ? 3u : 10u);
    for (const std::int64_t row : rows) {
      const auto pass = std::pair(item.graph, item.number / slates_of_pass[item.graph]);
      EXPECT_TRUE(seen[pass].insert(row).second);
    }
    if (item.graph == 1) passes_of_a_small_graph.insert(rows);
  }
  EXPECT_GT(passes_of_a_small_graph.size(), 20u);
}

TEST(SlateOrder, DrawsGraphsByTheRootOfTheirSize) {
  const SlateOrder order(options(4, 10, DrawMode::root), {9000, 1000, 10, 0}, 1);
  // 1,001 slates in proportion to 30, 10 and 1.
  EXPECT_EQ(order.slates_of(0), 732);
  EXPECT_EQ(order.slates_of(1), 244);
  EXPECT_EQ(order.slates_of(2), 24);
  EXPECT_EQ(order.slates_of(3), 0);
}

// Row r has place `rows - 1 - r`.
SlateOrder mixed(SlateMix mix, std::int64_t rows, int configs, double bias = 3) {
  OrderOptions own = options(4, configs);
  own.mix = mix;
  own.bias = bias;
  std::vector<std::int32_t> fastest_first(static_cast<std::size_t>(rows));
  for (std::int64_t r = 0; r < rows; ++r) fastest_first[rows - 1 - r] = static_cast<int>(r);
  return SlateOrder(own, {rows}, 1, {fastest_first});
}

TEST(SlateOrder, MixesEveryRowOnceAndAnewInEachEpoch) {
  for (const SlateMix mix : {SlateMix::close, SlateMix::balanced}) {
    for (const std::int64_t total : {7, 10, 11, 40, 57, 203, 1000}) {
      const SlateOrder order = mixed(mix, total, 10);
      std::set<std::int64_t> ever;
      for (std::int64_t epoch = 0; epoch < 40; ++epoch) {
        std::set<std::int64_t> seen;
        for (std::int64_t number = 0; number < order.slates_of(0); ++number) {
          const Rows rows = order.rows({.epoch = epoch, .number = number});
          EXPECT_EQ(rows, order.rows({.epoch = epoch, .number = number}));
          seen.insert(rows.begin(), rows.end());
        }
        EXPECT_EQ(seen.size(), static_cast<std::size_t>(total < 10 ? total : total / 10 * 10));
        EXPECT_GE(*seen.begin(), 0);
        EXPECT_LT(*seen.rbegin(), total);
        ever.insert(seen.begin(), seen.end());
      }
      EXPECT_EQ(ever.size(), static_cast<std::size_t>(total)) << "no row is left out for ever";
      if (total < 40) continue;
      EXPECT_NE(order.rows({.epoch = 0}), order.rows({.epoch = 1}));
    }
  }
}

// Also of a graph that is drawn less often than it has slates.
TEST(SlateOrder, DrawsAllRunTimesInWhateverMix) {
  for (const SlateMix mix : {SlateMix::close, SlateMix::balanced}) {
    for (const DrawMode draw : {DrawMode::root, DrawMode::graphs}) {
      OrderOptions own = options(4, 10, draw);
      own.mix = mix;
      std::vector<std::int32_t> large(2000), small(20);
      std::iota(large.begin(), large.end(), 0);
      std::iota(small.begin(), small.end(), 0);
      const SlateOrder order(own, {2000, 20, 20}, 1, {large, small, small});
      ASSERT_LT(order.slates_of(0), 200);
      std::set<std::int64_t> seen;
      for (std::int64_t epoch = 0; epoch < 40; ++epoch) {
        for (std::int64_t number = 0; number < order.slates_of(0); ++number) {
          const Rows rows = order.rows({.epoch = epoch, .number = number});
          seen.insert(rows.begin(), rows.end());
        }
      }
      EXPECT_GT(seen.size(), 1990u);
    }
  }
}

// Where K does not divide the rows, another part of them is left out in each pass.
TEST(SlateOrder, CloseSlatesTakeTheFastestAndTheSlowestRowsAsOftenAsOthers) {
  for (const std::int64_t total : {19, 58}) {
    const SlateOrder order = mixed(SlateMix::close, total, 10);
    constexpr std::int64_t kEpochs = 4000;
    std::vector<double> uses(static_cast<std::size_t>(total));
    for (std::int64_t epoch = 0; epoch < kEpochs; ++epoch) {
      for (std::int64_t number = 0; number < order.slates_of(0); ++number) {
        for (const std::int64_t row : order.rows({.epoch = epoch, .number = number}))
          uses[row] += 1.0 / kEpochs;
      }
    }
    const double expected =
        static_cast<double>(total / 10 * 10) / static_cast<double>(total);  // deviation < 0.008
    for (std::size_t row = 0; row < uses.size(); ++row)
      EXPECT_NEAR(uses[row], expected, 0.04) << row << " of " << total;
  }
}

TEST(SlateOrder, FormsSlatesOfCloseRunTimes) {
  const SlateOrder order = mixed(SlateMix::close, 1000, 10);
  for (std::int64_t number = 0; number < 100; ++number) {
    const Rows rows = order.rows({.number = number});
    const auto [least, most] = std::ranges::minmax(rows);
    EXPECT_LT(most - least, 80);  // at most two windows of 40
  }
}

TEST(SlateOrder, FormsSlatesOfBalancedRunTimes) {
  const SlateOrder order = mixed(SlateMix::balanced, 1005, 10);
  for (std::int64_t number = 0; number < 100; ++number) {
    const Rows rows = order.rows({.number = number});
    for (std::int64_t part = 0; part < 10; ++part) {
      const std::int64_t place = 1004 - rows[part];
      EXPECT_GE(place, part * 1005 / 10);
      EXPECT_LT(place, (part + 1) * 1005 / 10);
    }
  }
}

// Frequencies over 5,000 slates of 2 out of 20 rows, beside those of drawing one after the other.
TEST(SlateOrder, DrawsFastRowsMoreOften) {
  const SlateOrder order = mixed(SlateMix::fast, 20, 2, 2);
  std::vector<double> frequency(20), expected(20), weight(20);
  double sum = 0;
  for (std::size_t i = 0; i < 20; ++i)
    sum += weight[i] = std::exp(-2.0 * static_cast<double>(i) / 19);
  for (std::size_t i = 0; i < 20; ++i) {
    for (std::size_t j = 0; j < 20; ++j) {
      if (i == j) continue;
      const double pair = weight[i] / sum * weight[j] / (sum - weight[i]);
      expected[i] += pair;
      expected[j] += pair;
    }
  }
  for (std::int64_t epoch = 0; epoch < 5000; ++epoch) {
    const Rows rows = order.rows({.epoch = epoch, .number = epoch % 10});
    ASSERT_EQ(rows.size(), 2u);
    ASSERT_NE(rows[0], rows[1]);
    for (const std::int64_t row : rows) frequency[19 - row] += 1.0 / 5000;
  }
  for (std::size_t i = 0; i < 20; ++i) EXPECT_NEAR(frequency[i], expected[i], 0.02) << i;
}

TEST(SlateOrder, RefusesWhatGivesNoOrder) {
  EXPECT_THROW(SlateOrder(options(4, 10), {}, 1), ConfigError);
  EXPECT_THROW(SlateOrder(options(4, 10), {0, 0}, 1), ConfigError);
  EXPECT_THROW(SlateOrder(options(0, 10), {5}, 1), ConfigError);
  EXPECT_THROW(SlateOrder(options(4, 0), {5}, 1), ConfigError);
  const SlateOrder order(options(4, 10), {50}, 1);
  EXPECT_THROW(order.item(-1, 0), std::out_of_range);
  EXPECT_THROW(order.item(0, 4), std::out_of_range);
  EXPECT_THROW(order.rows(SlateId{.graph = 0, .number = 5}), std::out_of_range);
  EXPECT_THROW(order.rows(SlateId{.graph = 1}), std::out_of_range);
}

RC_GTEST_PROP(SlateOrderProperty, ItemsOfAnEpochAreEachSlateOnce, ()) {
  const auto rows = *rc::gen::nonEmpty(
      rc::gen::container<std::vector<std::int64_t>>(rc::gen::inRange<std::int64_t>(1, 60)));
  const int slates = *rc::gen::inRange(1, 9), configs = *rc::gen::inRange(1, 15);
  const auto draw = *rc::gen::element(DrawMode::rows, DrawMode::graphs, DrawMode::root);
  const SlateOrder order(options(slates, configs, draw), rows, 7);
  const std::int64_t epoch = *rc::gen::inRange<std::int64_t>(0, 5);
  std::set<std::pair<int, std::int64_t>> seen;
  std::int64_t filling = 0;
  for (const SlateId& item : epoch_items(order, epoch)) {
    const Rows drawn = order.rows(item, item.graph % 3 - 1);
    RC_ASSERT(static_cast<std::int64_t>(drawn.size()) ==
              std::min<std::int64_t>(configs, rows[item.graph]));
    if (item.weight == 0)
      ++filling;
    else
      RC_ASSERT(seen.emplace(item.graph, item.number).second);
  }
  RC_ASSERT(static_cast<std::int64_t>(seen.size()) == order.slates_per_epoch());
  RC_ASSERT(filling < slates);
}

}  // namespace
}  // namespace tpudist
