#include "results/scores/submission.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <cmath>

#include "core/error.hpp"
#include "tests/support/temp_dir.hpp"

namespace tpudist {
namespace {

using ::testing::ElementsAre;
using ::testing::SizeIs;
using Values = std::vector<double>;

const Collection kTile = Collection::parse("tile:xla");
const Collection kLayout = Collection::parse("layout:xla:default");

TEST(Submission, ListsAllOfALayoutGraphAndFiveOfATileGraph) {
  Submission submission;
  submission.add(kTile, "a1b2", Values{6, 5, 4, 3, 2, 1, 7});
  submission.add(kTile, "small", Values{2, 1});
  submission.add(kLayout, "bert.4x4", Values{3, -1, 2, 0.5, 10, 0});
  EXPECT_EQ(submission.to_csv(),
            "ID,TopConfigs\n"
            "tile:xla:a1b2,5;4;3;2;1\n"
            "tile:xla:small,1;0\n"
            "layout:xla:default:bert.4x4,1;5;3;2;0;4\n");
}

TEST(Submission, RanksEqualScoresByNumber) {
  EXPECT_THAT(ranking_of(Values{1, 0, 1, 0, -0.0}), ElementsAre(1, 3, 4, 0, 2));
}

TEST(Submission, RefusesWhatCannotBeRanked) {
  Submission submission;
  submission.add(kLayout, "a", Values{1, 2});
  EXPECT_THROW(submission.add(kLayout, "a", Values{1, 2}), DataError);
  EXPECT_THROW(submission.add(kLayout, "b", Values{1, std::nan("")}), DataError);
  EXPECT_THROW(submission.add(kLayout, "b", {}), DataError);
  EXPECT_THROW(submission.add(kLayout, "", Values{1}), DataError);
  EXPECT_THROW(submission.add(kLayout, "b,c", Values{1}), DataError);
  EXPECT_EQ(submission.rows().size(), 1u);
}

TEST(Submission, IsWritten) {
  const test::TempDir folder;
  Submission submission;
  submission.add(kTile, "kernel", Values{2, 1, 3});
  submission.add(kLayout, "bert", Values{1, 0});
  submission.write(folder / "submission.csv");
  EXPECT_EQ(read_text_file(folder / "submission.csv"), submission.to_csv());
  ASSERT_THAT(submission.rows(), SizeIs(2));
  EXPECT_EQ(submission.rows()[0].id, "tile:xla:kernel");
  EXPECT_THAT(submission.rows()[0].configs, ElementsAre(1, 0, 2));
}

TEST(Submission, OwnCollectionsAreWrittenLikeTpuGraphs) {
  Submission submission;
  submission.add(Collection::parse("layout:my-models:v1"), "net:4x4", Values{3, 1, 2});
  submission.add(Collection::parse("tile:Own"), "k", Values{6, 5, 4, 3, 2, 1});
  EXPECT_EQ(submission.to_csv(),
            "ID,TopConfigs\nlayout:my-models:v1:net:4x4,1;2;0\ntile:Own:k,5;4;3;2;1\n");
}

RC_GTEST_PROP(SubmissionProperty, RankingIsASortedPermutation, (const std::vector<int>& values)) {
  const Values scores(values.begin(), values.end());
  const auto ranking = ranking_of(scores);
  RC_ASSERT(ranking.size() == scores.size());
  for (std::size_t i = 1; i < ranking.size(); ++i) {
    const double a = scores[ranking[i - 1]], b = scores[ranking[i]];
    RC_ASSERT(a < b || (a == b && ranking[i - 1] < ranking[i]));
  }
}

}  // namespace
}  // namespace tpudist
