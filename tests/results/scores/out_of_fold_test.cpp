#include "results/scores/out_of_fold.hpp"

#include <gmock/gmock.h>

#include <nlohmann/json.hpp>

#include "tests/results/scores/predictions_case.hpp"
#include "tests/support/temp_dir.hpp"

namespace tpudist {
namespace {

using test::PredictionsCase;
using test::TempDir;
using ::testing::IsNan;

TEST(OutOfFold, ScoresEachMemberOnItsOwnFold) {
  const TempDir folder;
  const PredictionsCase given;
  given.write(folder / "predictions.h5");
  const PredictionsFile file(folder / "predictions.h5");
  const std::vector<OutOfFoldScore> scores = out_of_fold_scores(file);
  ASSERT_EQ(scores.size(), 3u);
  // Member 0 ranks bert as it was measured; member 1 swaps one pair of three of resnet.
  EXPECT_EQ(scores[0].fold, 0);
  EXPECT_EQ(scores[0].graphs, 1);
  EXPECT_DOUBLE_EQ(scores[0].score, 1);
  EXPECT_DOUBLE_EQ(scores[1].score, 1.0 / 3);
  EXPECT_EQ(scores[2].graphs, 0);  // failed
  EXPECT_THAT(scores[2].score, IsNan());
  const nlohmann::json json = out_of_fold_json(file.header(), scores);
  EXPECT_EQ(json.at("metric"), "kendall_tau");
  EXPECT_EQ(json.at("most_rows"), 0);
  ASSERT_EQ(json.at("members").size(), 3u);
  EXPECT_EQ(json.at("members")[0].dump(), R"({"fold":0,"graphs":1,"number":0,"score":1.0})");
  EXPECT_EQ(json.at("members")[2].dump(), R"({"fold":0,"graphs":0,"number":2,"score":null})");
}

TEST(OutOfFold, IsEmptyWhereMembersHoldNothingOut) {
  const TempDir folder;
  PredictionsCase given;
  for (PredictedMember& member : given.header.members) member.fold = -1;
  given.write(folder / "predictions.h5");
  EXPECT_TRUE(out_of_fold_scores(PredictionsFile(folder / "predictions.h5")).empty());
}

TEST(OutOfFold, TakesTheTileScoreForTiles) {
  const TempDir folder;
  PredictionsCase("tile:xla").write(folder / "predictions.h5");
  const auto scores = out_of_fold_scores(PredictionsFile(folder / "predictions.h5"));
  EXPECT_DOUBLE_EQ(scores[0].score, 1);  // fewer than 5 configurations: all are taken
}

}  // namespace
}  // namespace tpudist
