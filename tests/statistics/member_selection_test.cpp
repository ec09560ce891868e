#include "statistics/ranking/member_selection.hpp"

#include <gmock/gmock.h>

#include <cmath>

#include "core/error.hpp"
#include "core/random.hpp"
#include "statistics/ranking/metrics.hpp"

namespace tpudist {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;

// A graph; member m's scores are the targets with noise of its own size.
SelectionGraph graph(const std::string& family, std::uint64_t key, const std::vector<double>& noise,
                     int configs = 60) {
  CounterRng rng(key);
  SelectionGraph result;
  result.family = family;
  for (int k = 0; k < configs; ++k) result.targets.push_back(rng.normal());
  for (const double size : noise) {
    result.scores.emplace_back();
    for (const double target : result.targets)
      result.scores.back().push_back(target + size * rng.normal());
  }
  return result;
}

std::vector<SelectionGraph> graphs(const std::vector<double>& noise, int count = 6) {
  std::vector<SelectionGraph> result;
  for (int g = 0; g < count; ++g)
    result.push_back(
        graph("family" + std::to_string(g / 2), 100 + static_cast<std::uint64_t>(g), noise));
  return result;
}

TEST(SelectMembers, PrefersGoodMembersToBadOnes) {
  const MemberSelection selection = select_members(graphs({0.3, 0.3, 6.0, 6.0}), kendall_tau_b);
  EXPECT_TRUE(selection.takes_selection);
  EXPECT_GT(selection.nested, selection.plain + 0.02);
  EXPECT_GE(selection.in_sample, selection.nested);
  EXPECT_GT(selection.weights[0] + selection.weights[1], 0.9);
  EXPECT_NEAR(
      selection.weights[0] + selection.weights[1] + selection.weights[2] + selection.weights[3], 1,
      1e-12);
}

// How many of 400 selections among members that are alike are taken: `members` of equal noise, on
// graphs of families of these sizes.
int taken_by_luck(const std::vector<int>& families, std::size_t members) {
  int taken = 0;
  for (std::uint64_t trial = 0; trial < 400; ++trial) {
    std::vector<SelectionGraph> judged;
    for (std::size_t f = 0; f < families.size(); ++f) {
      for (int g = 0; g < families[f]; ++g)
        judged.push_back(graph("f" + std::to_string(f), mix_key({trial, judged.size()}),
                               std::vector<double>(members, 1.0), 20));
    }
    const MemberSelection selection = select_members(judged, kendall_tau_b, 6);
    if (selection.takes_selection)
      ++taken;
    else
      EXPECT_THAT(selection.weights, Each(1.0 / static_cast<double>(members)));
  }
  return taken;
}

TEST(SelectMembers, IsHardlyEverTakenAmongMembersThatAreAlike) {
  EXPECT_LE(taken_by_luck({1, 1, 1, 1, 1, 1, 1}, 3), 20);
  EXPECT_LE(taken_by_luck({3, 2, 1, 1}, 3), 20);
  EXPECT_LE(taken_by_luck({2, 2}, 2), 20);
  EXPECT_LE(taken_by_luck({1, 1, 1, 1, 1, 1, 1}, 8), 20);
}

// The nested gains 0.1, 0.2 and 0.3 of three families: mean 0.2, error 0.1 / sqrt(3).
TEST(SelectMembers, AsksForAGainAboveItsNoise) {
  const std::vector<SelectionGraph> judged = [] {
    std::vector<SelectionGraph> list;
    for (int g = 0; g < 3; ++g) list.push_back({"f" + std::to_string(g), {{0, 1}}, {0, 1}});
    return list;
  }();
  const RankingMetric one = [](auto, auto) { return 0.5; };
  const MemberSelection selection =
      select_members(judged, one, 1, std::vector<double>{0.4, 0.3, 0.2});
  EXPECT_NEAR(selection.plain, 0.3, 1e-12);
  EXPECT_NEAR(selection.nested, 0.5, 1e-12);
  EXPECT_NEAR(selection.gain_error, 0.1 / std::sqrt(3.0), 1e-12);
  EXPECT_NEAR(selection.gain_degrees, 2, 1e-12);
  EXPECT_NEAR(selection.gain_noise, 2.9199856 * 0.1 / std::sqrt(3.0), 1e-6);
  EXPECT_TRUE(selection.takes_selection);
  EXPECT_FALSE(select_members(judged, one, 1, std::vector<double>{0.45, 0.5, 0.2}).takes_selection);
  EXPECT_THROW(select_members(judged, one, 1, std::vector<double>{0.4}), Error);
}

TEST(SelectMembers, TakesTheFirstOfEqualMembers) {
  std::vector<SelectionGraph> judged = graphs({0.5});
  for (SelectionGraph& one : judged) one.scores.push_back(one.scores[0]);
  EXPECT_THAT(select_members(judged, kendall_tau_b, 1).in_sample,
              select_members(judged, kendall_tau_b, 1).plain);
}

TEST(SelectMembers, RefusesWhatCannotBeNested) {
  std::vector<SelectionGraph> judged = graphs({0.5, 0.5}, 2);
  EXPECT_THROW(select_members(judged, kendall_tau_b), Error);  // one family
  EXPECT_THROW(select_members({}, kendall_tau_b), Error);
  judged.push_back(graph("other", 1, {0.5}));
  EXPECT_THROW(select_members(judged, kendall_tau_b), Error);  // another number of members
  judged.pop_back();
  judged[0].targets.pop_back();
  EXPECT_THROW(select_members(judged, kendall_tau_b), Error);
}

TEST(SelectMembers, LeavesOutGraphsWithoutAMetric) {
  std::vector<SelectionGraph> judged = graphs({0.3, 3.0});
  const MemberSelection before = select_members(judged, kendall_tau_b);
  SelectionGraph constant = graph("constant", 9, {0.3, 3.0});
  constant.targets.assign(constant.targets.size(), 1.0);
  judged.push_back(constant);
  EXPECT_DOUBLE_EQ(select_members(judged, kendall_tau_b).plain, before.plain);
}

}  // namespace
}  // namespace tpudist
