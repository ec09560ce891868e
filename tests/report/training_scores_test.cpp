#include "report/training_scores.hpp"

#include <gmock/gmock.h>

#include <limits>

namespace tpudist {
namespace {

using ::testing::ElementsAre;

// Two members of seed 1, in one run or in two, and one of seed 2.
TEST(TrainingScores, AreMeansOverTheMembersOfEqualSeeds) {
  ScoreMatrix matrix;
  matrix.rows = {{.label = "a", .variant = "", .init_seed = 1, .order_seed = 1, .members = {0}},
                 {.label = "b", .variant = "", .init_seed = 2, .order_seed = 2, .members = {0}},
                 {.label = "c", .variant = "", .init_seed = 1, .order_seed = 1, .members = {1}}};
  matrix.graphs = {{.name = "bert", .family = "bert", .split = "valid"},
                   {.name = "resnet", .family = "resnet", .split = "valid"}};
  matrix.scores = {{0.25, 0.5}, {0.125, 1}, {0.75, 0}};
  const RunScores scores = mean_of_members(matrix);
  EXPECT_THAT(scores.graphs, ElementsAre("bert", "resnet"));
  EXPECT_THAT(scores.scores, ElementsAre(ElementsAre(0.5, 0.125), ElementsAre(0.25, 1)));
  EXPECT_TRUE(scores.folds.empty());
}

TEST(TrainingScores, OfMembersTogetherLeaveGraphsOutThatATrainingLacks) {
  constexpr double kNone = std::numeric_limits<double>::quiet_NaN();
  VariantRankings rankings;
  const auto graph = [](const std::string& name, int fold, std::vector<double> trainings) {
    RankedGraph made;
    made.name = made.family = name;
    made.split = fold < 0 ? "valid" : "train";
    made.fold = fold;
    made.trainings = std::move(trainings);
    return made;
  };
  rankings.graphs = {graph("bert", -1, {0.5, 0.25}), graph("gnmt", -1, {0.5, kNone}),
                     graph("resnet", 0, {1, 1})};
  const RunScores scores = members_together(rankings);
  EXPECT_THAT(scores.graphs, ElementsAre("bert"));
  EXPECT_THAT(scores.scores, ElementsAre(ElementsAre(0.5, 0.25)));
}

}  // namespace
}  // namespace tpudist
