#include "statistics/interval.hpp"

#include <gmock/gmock.h>

#include "tests/statistics/golden_scores.hpp"

namespace tpudist {
namespace {

using ::testing::HasSubstr;

TEST(IntervalText, NamesTheQuestionAndWhatItRestsOn) {
  const RunScoreTable scores = golden_scores(1);
  EXPECT_EQ(run_line(*run_interval(scores), "3 runs"),
            "these graphs, other runs         0.7220 (0.6748 to 0.7691, t(2)); 3 runs");
  EXPECT_EQ(family_line(*family_interval({&scores, 1})),
            "other families, other runs       0.7220 (0.5463 to 0.8976, t(2.51)); 7 graphs of 4 "
            "families, 3 runs");
}

TEST(IntervalText, SaysWhereOneRunTellsOfItselfOnly) {
  RunScoreTable scores = golden_scores(1);
  for (auto& own : scores.scores) own.resize(1);
  EXPECT_THAT(family_line(*family_interval({&scores, 1})),
              HasSubstr("other families, this model only"));
  EXPECT_THAT(no_run_line("one run"), HasSubstr("not enough: one run"));
}

TEST(IntervalText, NamesMembersOfOneTrainingForWhatTheyAre) {
  EXPECT_EQ(member_line({.value = 0.7, .error = 0.01, .degrees = 4, .low = 0.67, .high = 0.73},
                        "jackknife of 5 members"),
            "other members of this training   0.7000 (0.6700 to 0.7300, t(4)); jackknife of 5 "
            "members");
  EXPECT_THAT(one_training_line(), HasSubstr("another seed.init and seed.order"));
}

TEST(IntervalText, SaysWhatFewFamiliesCannotSee) {
  EXPECT_EQ(rare_failure_line(4),
            "an interval from 4 families cannot see failures rarer than about 1 in 4");
}

}  // namespace
}  // namespace tpudist
