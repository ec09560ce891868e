#include "data/loading/duplicates.hpp"

#include <gmock/gmock.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <map>
#include <set>

#include "core/error.hpp"
#include "core/random.hpp"
#include "data/shards/entropy_filter.hpp"
#include "tests/support/thrown.hpp"

namespace tpudist::test {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using enum DuplicatesPolicy;

// Three distinct configurations: A B A C A B.
RunTimes six_runs() {
  RunTimes times;
  times.runtime = {30, 7, 10, 5, 90, 8};
  times.group = {0, 1, 0, 2, 0, 1};
  return times;
}

TEST(MergeDuplicates, KeepsAllRowsWithoutAList) {
  const MergedRows rows = merge_duplicates(six_runs(), keep, "g");
  EXPECT_TRUE(rows.configs.empty());
  EXPECT_TRUE(rows.targets.empty());
}

TEST(MergeDuplicates, GivesOneRowForEachDistinctConfiguration) {
  for (const DuplicatesPolicy policy : {min, mean, median, first})
    EXPECT_THAT(merge_duplicates(six_runs(), policy, "g").configs, ElementsAre(0, 1, 3));
  EXPECT_THAT(merge_duplicates(six_runs(), min, "g").targets, ElementsAre(10, 7, 5));
  EXPECT_THAT(merge_duplicates(six_runs(), first, "g").targets, ElementsAre(30, 7, 5));
  EXPECT_THAT(merge_duplicates(six_runs(), median, "g").targets, ElementsAre(30, 7.5, 5));
  EXPECT_THAT(merge_duplicates(six_runs(), mean, "g").targets, ElementsAre(130.0 / 3, 7.5, 5));
}

TEST(ChooseRows, TakesAFewByTheNameOfTheGraph) {
  EXPECT_TRUE(choose_rows(six_runs(), {}, "a", "g").configs.empty());
  EXPECT_THAT(choose_rows(six_runs(), {keep, 9}, "a", "g").configs, ElementsAre(0, 1, 2, 3, 4, 5));
  EXPECT_THAT(choose_rows(six_runs(), {min, 3}, "a", "g").configs, ElementsAre(0, 1, 3));
  std::vector<std::int64_t> runtime;
  std::vector<std::int32_t> group;
  for (int i = 0; i < 1000; ++i) {
    runtime.push_back(1000 - i);
    group.push_back(i);
  }
  RunTimes many;
  many.runtime = std::vector(runtime);
  many.group = std::vector(group);
  for (const DuplicatesPolicy policy : {keep, min}) {
    const MergedRows some = choose_rows(many, {policy, 100}, "a", "g");
    ASSERT_EQ(some.configs.size(), 100u);
    EXPECT_TRUE(std::ranges::is_sorted(some.configs));
    EXPECT_EQ(std::set(some.configs.begin(), some.configs.end()).size(), 100u);
    for (std::size_t row = 0; row < 100; ++row)
      EXPECT_EQ(some.targets[row], static_cast<double>(1000 - some.configs[row]));
    const auto fast =
        std::ranges::count_if(some.configs, [](auto config) { return config >= 500; });
    EXPECT_NEAR(static_cast<double>(fast), 50, 20);
    const auto differs = [&](const char* name) {
      return !std::ranges::equal(choose_rows(many, {policy, 100}, name, "g").configs, some.configs);
    };
    EXPECT_FALSE(differs("a"));
    EXPECT_TRUE(differs("b"));
  }
}

// A filter of corrupted run times comes before duplicates are merged.
TEST(ChooseRows, LeavesFilteredMeasurementsOut) {
  std::vector<std::int64_t> runtime;
  std::vector<std::int32_t> group;
  CounterRng random(3);
  for (int i = 0; i < 3000; ++i) {
    const bool still = 1000 <= i && i < 2000;
    runtime.push_back(still ? 500'000 : 1'000 + static_cast<std::int64_t>(random.below(1'000'000)));
    group.push_back(i % 1500);  // every configuration twice
  }
  RunTimes times;
  times.runtime = std::vector(runtime);
  times.group = std::vector(group);
  const std::vector<bool> kept = kept_by_entropy(runtime, 0.3);
  std::vector<std::int64_t> left;
  for (std::int64_t i = 0; i < 3000; ++i)
    if (kept[i]) left.push_back(i);
  ASSERT_GT(left.size(), 1000u);
  ASSERT_LT(left.size(), 2000u);
  EXPECT_TRUE(std::ranges::equal(choose_rows(times, {keep, 0, 0.3}, "a", "g").configs, left));
  const MergedRows merged = choose_rows(times, {min, 0, 0.3}, "a", "g");
  std::map<std::int32_t, double> fastest;
  for (const std::int64_t i : left) {
    const auto at = static_cast<std::size_t>(i);
    const auto time = static_cast<double>(runtime[at]);
    const auto [entry, fresh] = fastest.emplace(group[at], time);
    entry->second = std::min(entry->second, time);
  }
  ASSERT_EQ(merged.configs.size(), fastest.size());
  for (std::size_t row = 0; row < merged.configs.size(); ++row) {
    EXPECT_TRUE(kept[merged.configs[row]]);
    EXPECT_EQ(merged.targets[row], fastest.at(group[merged.configs[row]]));
  }
  EXPECT_EQ(choose_rows(times, {min, 10, 0.3}, "a", "g").configs.size(), 10u);
  EXPECT_TRUE(choose_rows(times, {min, 0, 1e6}, "a", "g").configs.empty());
}

TEST(MergeDuplicates, ComparesNormalizedTimesOfTiles) {
  RunTimes times = six_runs();
  times.normalizer = {30, 7, 5, 5, 100, 4};  // targets 1, 1, 2, 1, 0.9, 2
  EXPECT_THAT(merge_duplicates(times, min, "g").targets, ElementsAre(0.9, 1, 1));
}

TEST(MergeDuplicates, RefusesGroupsThatAreNotNumberedByFirstOccurrence) {
  for (const std::vector<std::int32_t>& groups :
       {std::vector<std::int32_t>{1, 0}, {0, 2}, {-1, 0}}) {
    RunTimes times;
    times.runtime = {1, 2};
    times.group = std::vector(groups);
    EXPECT_THAT(
        message_of<DataError>([&] { merge_duplicates(times, min, "shard.h5:/graphs/000000"); }),
        HasSubstr("shard.h5:/graphs/000000/config_group: value"));
  }
}

RC_GTEST_PROP(MergeDuplicatesProperty, EqualsAMapOfLists, ()) {
  const auto labels = *rc::gen::container<std::vector<int>>(rc::gen::inRange(0, 12));
  std::vector<std::int32_t> groups;
  std::vector<std::int64_t> runtimes;
  std::map<int, std::int32_t> number;
  std::map<std::int32_t, std::vector<double>> runs;
  for (const int label : labels) {
    const auto group =
        number.emplace(label, static_cast<std::int32_t>(number.size())).first->second;
    groups.push_back(group);
    runtimes.push_back(*rc::gen::inRange(1, 1000));
    runs[group].push_back(static_cast<double>(runtimes.back()));
  }
  const RunTimes times{
      .runtime = std::move(runtimes), .normalizer = {}, .group = std::move(groups)};
  const MergedRows smallest = merge_duplicates(times, min, "g");
  const MergedRows middle = merge_duplicates(times, median, "g");
  RC_ASSERT(smallest.targets.size() == runs.size());
  RC_ASSERT(std::ranges::is_sorted(smallest.configs));
  for (auto& [group, values] : runs) {
    RC_ASSERT(times.group[smallest.configs[group]] == group);
    std::ranges::sort(values);
    RC_ASSERT(smallest.targets[group] == values.front());
    const auto n = values.size();
    RC_ASSERT(middle.targets[group] == (values[(n - 1) / 2] + values[n / 2]) / 2);
  }
}

}  // namespace
}  // namespace tpudist::test
