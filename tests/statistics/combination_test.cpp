#include "statistics/ranking/combination.hpp"

#include <gmock/gmock.h>

#include <cmath>
#include <limits>

#include "core/error.hpp"
#include "tests/support/level_sequence.hpp"
#include "tests/support/thrown.hpp"

namespace tpudist {
namespace {

using test::level_sequence;
using test::message_of;
using ::testing::AllOf;
using ::testing::DoubleNear;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Pointwise;

using Values = std::vector<double>;

std::vector<Values> members() {
  std::vector<Values> rows{level_sequence(8, 1, 5), level_sequence(8, 2, 1000),
                           level_sequence(8, 3, 3)};
  for (double& score : rows[1]) score += 100;
  for (double& score : rows[2]) score *= -0.25;
  return rows;
}

TEST(Combine, EqualsNumPyAndSciPy) {
  struct Golden {
    std::string_view rule;
    Values scores;
  };
  // Printed by tests/golden/combination.py; weights 1, 2, 0.5; softmax at temperature 0.5.
  const Golden goldens[] = {
      {"mean",
       {481.07142857142856, 561.9642857142857, 317.92857142857144, 345.10714285714283,
        226.85714285714286, 456.5, 301.67857142857144, 330.7857142857143}},
      {"z_score",
       {0.8295631083357689, 1.3074479710664213, -0.5871006143935061, -0.40505476317467787,
        -0.16042495642268603, 0.0033906222197073017, -0.6442437512055145, -0.3435776164255127}},
      {"min_max",
       {0.7189097103918228, 0.8571428571428571, 0.22815770260403992, 0.27488440009734727,
        0.42857142857142855, 0.39328303723533703, 0.20090046239961062, 0.3210026770503772}},
      {"rank_mean",
       {6.5, 7.142857142857143, 3.2142857142857144, 4.285714285714286, 3.857142857142857,
        4.357142857142857, 2.5714285714285716, 4.071428571428571}},
      {"borda",
       {-1.1428571428571428, -0.7142857142857143, -4.571428571428571, -3.2857142857142856, -4.0,
        -3.142857142857143, -5.0, -3.7142857142857144}},
      {"reciprocal_rank",
       {-0.17687074829931973, -0.14285714285714285, -0.3190476190476191, -0.28095238095238095,
        -0.6273809523809524, -0.2952380952380952, -0.4523809523809524, -0.2571428571428571}},
      {"softmax",
       {3.2850841916131333, 5.37759432340477, 2.1413612977999357, 2.120750645864738,
        1.0611055831682354, 2.1059517638437093, 1.8006554876135272, 2.43595675884069}},
  };
  const std::vector<Values> rows = members();
  for (const Golden& golden : goldens) {
    const Combination combination{combination_rule(golden.rule), 0.5};
    EXPECT_THAT(combine_scored(rows, combination, Values{1, 2, 0.5}),
                Pointwise(DoubleNear(1e-12), golden.scores))
        << golden.rule;
  }
}

TEST(Combine, EveryRuleButTheMeanIgnoresTheScaleOfAMember) {
  std::vector<Values> rows = members(), scaled = rows;
  for (double& score : scaled[1]) score = 1e6 * score - 4e7;
  for (const char* name :
       {"z_score", "min_max", "rank_mean", "borda", "reciprocal_rank", "softmax"}) {
    const Combination combination{combination_rule(name)};
    EXPECT_THAT(combine_scored(scaled, combination),
                Pointwise(DoubleNear(1e-9), combine_scored(rows, combination)))
        << name;
  }
}

constexpr const char* kRules[] = {"mean",  "z_score",         "min_max", "rank_mean",
                                  "borda", "reciprocal_rank", "softmax"};

// The formulas of docs/predictions.md on one member with a tie.
TEST(Combine, TiesShareWhatTheRuleGives) {
  const Values scores{3, 1, 3, 5};
  const auto by = [&](const char* rule) {
    return combine_scored(std::vector<Values>{scores}, {combination_rule(rule), 2});
  };
  const double r2 = std::sqrt(2.0), p = std::exp(r2 / 2), sum = p + 2 + 1 / p;
  EXPECT_THAT(by("mean"), ElementsAre(3, 1, 3, 5));
  EXPECT_THAT(by("z_score"), Pointwise(DoubleNear(1e-12), Values{0, -r2, 0, r2}));
  EXPECT_THAT(by("min_max"), ElementsAre(0.5, 0, 0.5, 1));
  EXPECT_THAT(by("rank_mean"), ElementsAre(2.5, 1, 2.5, 4));
  EXPECT_THAT(by("borda"), ElementsAre(-1, -3, -1, 0));
  EXPECT_THAT(by("reciprocal_rank"), ElementsAre(-0.4, -1, -0.4, -0.25));
  EXPECT_THAT(by("softmax"),
              Pointwise(DoubleNear(1e-12), Values{std::log(sum), std::log(sum / p), std::log(sum),
                                                  std::log(sum * p)}));
}

TEST(Combine, AMemberWithOneScoreForAllChangesNoOrder) {
  const Values scores{3, 1, 2};
  for (const char* name : kRules) {
    const Values both =
        combine_scored(std::vector{scores, Values(3, 7.0)}, {combination_rule(name)});
    EXPECT_LT(both[1], both[2]) << name;
    EXPECT_LT(both[2], both[0]) << name;
  }
}

// The mean of 20 equal numbers is another number, and its distance from them no deviation.
TEST(Combine, EqualScoresAreEqualBeyondRounding) {
  for (const double score : {0.1, -3.3e7, 1e-9, 0.0}) {
    std::vector<Values> rows(4, Values(20, score));
    for (std::size_t m = 0; m < rows.size(); ++m) {
      for (double& one : rows[m]) one *= 1 + 0.1 * static_cast<double>(m);
    }
    if (score != 0) rows[1][7] = std::nextafter(rows[1][7], 1.0);
    for (const char* name : {"z_score", "min_max"})
      EXPECT_THAT(combine_scored(rows, {combination_rule(name)}), Each(0.0)) << name << score;
    EXPECT_THAT(combine_scored(rows, {CombinationRule::softmax}),
                Each(DoubleNear(std::log(20.0), 1e-12)));
    EXPECT_THAT(combine_scored(std::vector(4, rows[0]), {CombinationRule::borda}), Each(0.0));
    EXPECT_THAT(combine_scored(std::vector(4, rows[0]), {CombinationRule::rank_mean}), Each(10.5));
  }
}

// What differs by more than rounding is told apart, beside however large a number.
TEST(Combine, KeepsSmallDifferences) {
  EXPECT_THAT(combine_scored(std::vector<Values>{{1e6, 1e6 + 1e-6}}, {}),
              Pointwise(DoubleNear(1e-12), Values{-1, 1}));
  // Their squares are too small for a double.
  EXPECT_THAT(combine_scored(std::vector<Values>{{0, 5e-324}}, {}), ElementsAre(0, 0));
}

TEST(Combine, LeavesOutMembersWithoutWeight) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const std::vector<Values> rows{{3, 1, 2}, {nan, nan, nan}};
  EXPECT_THAT(combine_scored(rows, {CombinationRule::mean}, Values{2, 0}), ElementsAre(3, 1, 2));
}

TEST(Combine, ATinyTemperatureLosesNoConfiguration) {
  const Values result = combine_scored(std::vector<Values>{level_sequence(50, 5, 1000)},
                                       {CombinationRule::softmax, 1e-4});
  for (const double score : result) EXPECT_TRUE(std::isfinite(score));
}

TEST(Combine, RefusesWhatCannotBeCombined) {
  const std::vector<Values> rows{{1, 2}, {2, 1}};
  for (const double temperature : {0.0, -1.0, std::numeric_limits<double>::infinity(),
                                   std::numeric_limits<double>::quiet_NaN()})
    EXPECT_THROW(combine_scored(rows, {CombinationRule::softmax, temperature}), Error);
  const std::vector<Values> infinite{{1, std::numeric_limits<double>::infinity()}};
  EXPECT_THAT(message_of<DataError>([&] { combine_scored(infinite, {}); }),
              HasSubstr("configuration 1"));
}

TEST(Combine, PassesOverMembersWithoutScoresOrWeight) {
  const std::vector<Values> all{{1, 2, 3}, {}, {5, 1, 9}, {4, 1, 2}};
  const std::vector<Values> some{all[0], all[3]};
  const Values weights{2, 1, 0, 1};
  EXPECT_EQ(combine_scored(all, {}, weights), combine_scored(some, {}, Values{2, 1}));
  EXPECT_TRUE(combine_scored(all, {}, Values{0, 1, 0, 0}).empty());
}

TEST(CombinationRule, IsKeptAsText) {
  for (const std::string text : {"z_score", "mean", "softmax 0.5", "softmax 1"})
    EXPECT_EQ(to_text(read_combination(text)), text);
  EXPECT_EQ(read_combination("softmax 0.5"), (Combination{CombinationRule::softmax, 0.5}));
  for (const std::string text : {"", "median", "mean 2", "softmax half", "softmax 0.5 "})
    EXPECT_THROW(read_combination(text), ConfigError) << text;
}

TEST(CombinationRule, NamesAreThoseOfTheConfiguration) {
  for (const char* name : kRules) EXPECT_EQ(name_of(combination_rule(name)), name);
  EXPECT_THAT(message_of<ConfigError>([] { combination_rule("median"); }),
              AllOf(HasSubstr("median"), HasSubstr("reciprocal_rank")));
}

using Members = std::vector<std::vector<double>>;

TEST(MemberSpread, MembersThatDifferByScaleAndShiftAloneAgree) {
  const auto spreads = member_spreads(Members{{3, 1, 2}, {130, 110, 120}});
  ASSERT_EQ(spreads.size(), 3u);
  const std::int64_t ranks[] = {3, 1, 2};
  for (std::size_t k = 0; k < 3; ++k) {
    EXPECT_NEAR(spreads[k].deviation, 0, 1e-12);
    EXPECT_EQ(spreads[k].best_rank, ranks[k]);
    EXPECT_EQ(spreads[k].worst_rank, ranks[k]);
  }
}

TEST(MemberSpread, IsTheSampleDeviationOfZScoresAndTheRangeOfRanks) {
  // z-scores of (0, 2): -1 and 1; of (2, 0): 1 and -1; of (0, 6): -1 and 1.
  const auto spreads = member_spreads(Members{{0, 2}, {2, 0}, {0, 6}});
  EXPECT_THAT(spreads[0].z_scores, ElementsAre(-1, 1, -1));
  EXPECT_NEAR(spreads[0].deviation, std::sqrt(4.0 / 3), 1e-12);  // of -1, 1, -1
  EXPECT_NEAR(spreads[1].deviation, std::sqrt(4.0 / 3), 1e-12);
  EXPECT_EQ(spreads[0].best_rank, 1);
  EXPECT_EQ(spreads[0].worst_rank, 2);
}

TEST(MemberSpread, EqualScoresShareTheLowestRank) {
  const auto spreads = member_spreads(Members{{5, 1, 1, 7}, {0, 0, 0, 0}});
  EXPECT_EQ(spreads[0].best_rank, 1);
  EXPECT_EQ(spreads[0].worst_rank, 3);
  EXPECT_EQ(spreads[1].worst_rank, 1);
  EXPECT_EQ(spreads[2].worst_rank, 1);
  EXPECT_EQ(spreads[3].worst_rank, 4);
}

TEST(MemberSpread, OfOneMemberIsUndefined) {
  EXPECT_TRUE(std::isnan(member_spreads(Members{{1, 2}})[0].deviation));
}

TEST(MemberSpread, RefusesWhatCannotBeCompared) {
  EXPECT_THROW(member_spreads(Members{}), Error);
  EXPECT_THROW(member_spreads(Members{{1, 2}, {1}}), Error);
  EXPECT_THROW(member_spreads(Members{{1, std::numeric_limits<double>::infinity()}}), DataError);
}

}  // namespace
}  // namespace tpudist
