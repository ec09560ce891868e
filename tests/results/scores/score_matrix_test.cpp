#include "results/scores/score_matrix.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/error.hpp"
#include "results/scores/result_set.hpp"
#include "results/scores/system_scores.hpp"
#include "tests/results/scores/run_case.hpp"
#include "tests/support/thrown.hpp"

namespace tpudist {
namespace {

using test::PredictionsCase;
using test::TempDir;
using test::write_run;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

// Two runs of other seeds, whose files hold what the test made of them.
struct TwoRuns {
  PredictionsCase a, b;
  TempDir folder;

  TwoRuns() { b.header.runs[0].init_seed = b.header.runs[0].order_seed = 6; }
  std::vector<RunRecord> read() const {
    write_run(folder / "a", a, 5);
    write_run(folder / "b", b, 6);
    return read_results({folder / "a", folder / "b"}).runs;
  }
  std::string refusal(MatrixRows kind) const {
    return test::message_of<ConfigError>([&] { score_matrix(read(), kind); });
  }
};

TEST(ScoreMatrixTest, MembersOnValidationGraphs) {
  const ScoreMatrix matrix = score_matrix(TwoRuns().read(), MatrixRows::members);
  ASSERT_EQ(matrix.rows.size(), 4u);  // members 2 failed
  EXPECT_EQ(matrix.rows[1].label, "seed 5 member 1");
  EXPECT_EQ(matrix.rows[2].init_seed, 6);
  ASSERT_EQ(matrix.graphs.size(), 1u);
  EXPECT_EQ(matrix.entries[0].name, "unet");
  EXPECT_THAT(matrix.scores, ElementsAre(ElementsAre(1, -1, 1, -1)));
  EXPECT_THAT(matrix.left_out,
              ElementsAre(HasSubstr("seed 5 member 2"), HasSubstr("seed 6 member 2")));
}

// Folds over train+valid can hold a graph of each split under one name.
TEST(ScoreMatrixTest, GraphsOfTwoSplitsMayShareAName) {
  TwoRuns runs;
  for (PredictionsCase* own : {&runs.a, &runs.b}) {
    own->header.graphs[1].name = "bert";
    own->header.graphs[1].split = "valid";
  }
  const ScoreMatrix matrix = score_matrix(runs.read(), MatrixRows::out_of_fold);
  ASSERT_EQ(matrix.graphs.size(), 2u);
  EXPECT_EQ(matrix.entries[0].split, "train");
  EXPECT_EQ(matrix.entries[1].split, "valid");
  EXPECT_THAT(matrix.graphs, ElementsAre("bert (train)", "bert (valid)"));
}

TEST(ScoreMatrixTest, TrainingsOnGraphsOfFolds) {
  TwoRuns runs;
  runs.b.graphs[1].scores[1] = {4, 5, 6};
  const ScoreMatrix matrix = score_matrix(runs.read(), MatrixRows::out_of_fold);
  ASSERT_EQ(matrix.rows.size(), 2u);
  EXPECT_THAT(matrix.rows[0].members, ElementsAre(0, 1));
  ASSERT_EQ(matrix.graphs.size(), 2u);
  EXPECT_EQ(matrix.folds[1], 1);
  EXPECT_NEAR(matrix.scores[1][0], 1.0 / 3, 1e-15);
  EXPECT_EQ(matrix.scores[1][1], 1);
  EXPECT_EQ(matrix.families[0], "bert");
  EXPECT_EQ(matrix.families[1], "resnet");
}

TEST(ScoreMatrixTest, TrainingsAreMeansOfTheirMembers) {
  const ScoreMatrix matrix = score_matrix(TwoRuns().read(), MatrixRows::trainings);
  ASSERT_EQ(matrix.rows.size(), 2u);
  EXPECT_THAT(matrix.rows[0].members, ElementsAre(0, 1, 2));
  EXPECT_THAT(matrix.scores, ElementsAre(ElementsAre(0, 0)));  // of 1 and -1
}

// Members that failed do not vanish without a word.
TEST(ScoreMatrixTest, SaysHowManyMembersFailed) {
  TwoRuns two;
  two.b.header.runs[0].parameter_hash = 2;
  const std::vector<RunRecord> runs = two.read();
  const ScoreMatrix matrix = score_matrix(runs, MatrixRows::trainings);
  EXPECT_THAT(matrix.failed_text(),
              ::testing::StartsWith("2 of 6 members failed (seed 5 and 1 more): "));
  EXPECT_THAT(system_scores(runs, EvaluatedOn::valid).notes, ElementsAre(matrix.failed_text()));
  EXPECT_EQ(ScoreMatrix().failed_text(), "");
}

TEST(ScoreMatrixTest, AGraphOnWhichARunIsUndefinedIsLeftOut) {
  // The combination of opposite scores is no ranking.
  const ScoreMatrix matrix = score_matrix(TwoRuns().read(), MatrixRows::together);
  EXPECT_TRUE(matrix.rows.empty());
  EXPECT_TRUE(matrix.graphs.empty());
  EXPECT_THAT(matrix.left_out, ::testing::Contains(HasSubstr("seed 5")));
}

TEST(ScoreMatrixTest, ATrainingThatLacksAFoldIsLeftOut) {
  TwoRuns runs;
  runs.b.header.members[1].failed = true;
  const ScoreMatrix matrix = score_matrix(runs.read(), MatrixRows::out_of_fold);
  ASSERT_EQ(matrix.rows.size(), 1u);
  EXPECT_THAT(matrix.left_out, ElementsAre(HasSubstr("the member of fold 1")));
}

TEST(ScoreMatrixTest, NamesWhatDiffers) {
  TwoRuns times;
  times.b.graphs[2].runtime[1] = 21;
  EXPECT_THAT(times.refusal(MatrixRows::members), HasSubstr("run times of unet differ"));
  TwoRuns rows;
  rows.b.header.graphs[2].configs = 5;
  EXPECT_THAT(rows.refusal(MatrixRows::members), HasSubstr("3 rows of 4 configurations"));
  TwoRuns most;
  most.b.header.most_rows = 3;
  EXPECT_THAT(most.refusal(MatrixRows::members), HasSubstr("predictions.rows"));
  TwoRuns names;
  names.b.header.graphs[2].name = "vgg";
  EXPECT_THAT(names.refusal(MatrixRows::members), HasSubstr("only the former scored"));
  TwoRuns collections;
  collections.b.header.collection = "layout:nlp:random";
  EXPECT_THAT(collections.refusal(MatrixRows::members), HasSubstr("layout:nlp:random"));
  TwoRuns folds;
  folds.b.header.runs[0].fold_hash = 9;
  EXPECT_THAT(folds.refusal(MatrixRows::out_of_fold), HasSubstr("other folds"));
  EXPECT_EQ(folds.refusal(MatrixRows::members), "");
}

TEST(ScoreMatrixTest, RunsWithoutScoresGiveAnEmptyMatrix) {
  RunRecord run;
  run.label = "waiting";
  const ScoreMatrix matrix = score_matrix(std::vector{run}, MatrixRows::members);
  EXPECT_TRUE(matrix.rows.empty());
  EXPECT_THAT(matrix.left_out, ElementsAre(HasSubstr("waiting")));
  run.state = RunState::failed;
  EXPECT_THAT(score_matrix(std::vector{run}, MatrixRows::trainings).left_out,
              ElementsAre("waiting: failed"));
}

// A training is known by its settings and seeds, whatever label a sweep gives it.
TEST(ScoreMatrixTest, ATrainingUnderTwoLabelsIsOne) {
  std::vector<RunRecord> runs = TwoRuns().read();
  runs[1].init_seed = runs[0].init_seed;
  runs[1].order_seed = runs[0].order_seed;
  runs[1].variant = "rate=0.1";
  const ScoreMatrix matrix = score_matrix(runs, MatrixRows::trainings);
  EXPECT_EQ(matrix.rows.size(), 1u);
  EXPECT_THAT(matrix.left_out, ::testing::Contains(HasSubstr("is in")));
}

}  // namespace
}  // namespace tpudist
