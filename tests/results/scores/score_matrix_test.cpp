#include "results/scores/score_matrix.hpp"

#include <cmath>
#include <nlohmann/json.hpp>

#include "core/error.hpp"
#include "results/scores/member_scores.hpp"
#include "results/scores/result_set.hpp"
#include "results/scores/system_scores.hpp"
#include "tests/results/scores/run_case.hpp"
#include "tests/support/matchers.hpp"

namespace tpudist::test {
namespace {

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
    return message_of<ConfigError>([&] { score_matrix(read(), kind); });
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
  EXPECT_THAT(matrix.failed_text(), StartsWith("2 of 6 members failed (seed 5 and 1 more): "));
  EXPECT_THAT(system_scores(runs, EvaluatedOn::valid).notes, ElementsAre(matrix.failed_text()));
  EXPECT_EQ(ScoreMatrix().failed_text(), "");
}

TEST(ScoreMatrixTest, AGraphOnWhichARunIsUndefinedIsLeftOut) {
  // The combination of opposite scores is no ranking.
  const ScoreMatrix matrix = score_matrix(TwoRuns().read(), MatrixRows::together);
  EXPECT_TRUE(matrix.rows.empty());
  EXPECT_TRUE(matrix.graphs.empty());
  EXPECT_THAT(matrix.left_out, Contains(HasSubstr("seed 5")));
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
  EXPECT_THAT(matrix.left_out, Contains(HasSubstr("is in")));
}

MemberScores scores_of(const PredictionsCase& predictions) {
  const TempDir folder;
  predictions.write(folder / "predictions.h5");
  return read_member_scores(PredictionsFile(folder / "predictions.h5"));
}

TEST(MemberScoresTest, TellsEachGraphWithItsMembersAndTheirCombination) {
  const MemberScores scores = scores_of(PredictionsCase());
  EXPECT_EQ(scores.metric, "kendall_tau");
  ASSERT_EQ(scores.graphs.size(), 3u);
  const GraphResult &bert = scores.graphs[0], &resnet = scores.graphs[1], &unet = scores.graphs[2];
  EXPECT_EQ(bert.name, "bert");
  EXPECT_EQ(bert.family, "bert");
  EXPECT_EQ(bert.fold, 0);
  EXPECT_EQ(bert.rows, 3);
  EXPECT_EQ(bert.members[0], 1.0);  // 1 3 2 against 10 30 20
  EXPECT_TRUE(bert.held_out[0]);
  EXPECT_TRUE(std::isnan(bert.members[1]));  // it was trained on bert
  EXPECT_FALSE(bert.held_out[1]);
  EXPECT_EQ(bert.combined, 1.0);
  EXPECT_EQ(bert.combined_members, 1);
  EXPECT_NEAR(resnet.members[1], 1.0 / 3, 1e-15);
  EXPECT_EQ(unet.members[0], 1.0);
  EXPECT_EQ(unet.members[1], -1.0);
  EXPECT_EQ(unet.combined_members, 2);
  EXPECT_TRUE(std::isnan(unet.combined));  // opposite scores cancel: no ranking
}

// Of opposite rankings the one with ten times larger scores wins by their mean.
TEST(MemberScoresTest, CombinesMembersByTheRuleOfTheirFile) {
  PredictionsCase predictions;
  predictions.graphs[2].scores[0] = {30, 20, 10};
  EXPECT_TRUE(std::isnan(scores_of(predictions).graphs[2].combined));
  predictions.header.combination = Combination{CombinationRule::mean};
  const MemberScores scores = scores_of(predictions);
  EXPECT_EQ(scores.combination.rule, CombinationRule::mean);
  EXPECT_EQ(scores.graphs[2].combined, 1.0);
}

// Not the mean of the other graphs, which may be easier.
TEST(MemberScoresTest, AMemberWithNaNOfAGraphThatItNeverSawHasNoScores) {
  PredictionsCase predictions;
  predictions.graphs[2].scores[0].assign(3, kNoScore);
  const MemberScores scores = scores_of(predictions);
  EXPECT_TRUE(scores.members[0].failed);
  EXPECT_FALSE(scores.members[1].failed);
  for (const GraphResult& graph : scores.graphs) EXPECT_TRUE(std::isnan(graph.members[0]));
  EXPECT_EQ(scores.graphs[2].members[1], -1.0);
}

TEST(MemberScoresTest, TheDataHashTellsRunTimesApart) {
  PredictionsCase other;
  other.graphs[2].runtime[0] += 1;
  const MemberScores a = scores_of(PredictionsCase()), b = scores_of(other);
  EXPECT_EQ(a.graphs[0].data_hash, b.graphs[0].data_hash);
  EXPECT_NE(a.graphs[2].data_hash, b.graphs[2].data_hash);
  EXPECT_NE(a.data_hash, b.data_hash);
  EXPECT_EQ(a.data_hash, scores_of(PredictionsCase()).data_hash);
}

TEST(MemberScoresTest, AScoreThatIsNotFiniteIsNone) {
  PredictionsCase predictions;
  predictions.graphs[2].scores[1][0] = kNoScore;
  const MemberScores scores = scores_of(predictions);
  EXPECT_TRUE(std::isnan(scores.graphs[2].members[1]));
  EXPECT_EQ(scores.graphs[2].combined_members, 1);
  EXPECT_EQ(scores.graphs[2].combined, 1.0);
}

TEST(MemberScoresTest, ReadsScoresJsonWhereThereAreNoPredictions) {
  const TempDir folder;
  write_text(
      folder / "scores.json",
      R"({"split": "valid", "most_rows": 8, "held_out_only": false, "parameters": "00000000000000ab",
    "ensemble": {"primary": "kendall_tau", "graphs": [{"name": "resnet50", "configs": 8, "kendall_tau": 0.75,
                             "data_hash": "00000000000000cd"}]},
    "members": [{"number": 3, "used": true, "graphs": [{"name": "resnet50", "configs": 8, "kendall_tau": 0.5}]},
                {"number": 4, "used": false, "graphs": []}]})");
  const MemberScores scores =
      read_member_scores_json(folder / "scores.json", "layout:xla:random", 3);
  ASSERT_EQ(scores.graphs.size(), 1u);
  EXPECT_EQ(scores.graphs[0].family, "resnet");
  EXPECT_EQ(scores.graphs[0].combined, 0.75);
  EXPECT_EQ(scores.graphs[0].members[0], 0.5);
  EXPECT_TRUE(std::isnan(scores.graphs[0].members[1]));
  EXPECT_TRUE(scores.members[1].failed);
  EXPECT_EQ(scores.graphs[0].data_hash, 0xcdu);
  EXPECT_NE(scores.data_hash, 0u);
  EXPECT_EQ(scores.parameter_hash, 0xabu);

  write_text(folder / "scores.json", "{\"ensemble\": 3}");
  EXPECT_THROW(read_member_scores_json(folder / "scores.json", "layout:xla:random", 3), DataError);
}

TEST(OutOfFold, ScoresEachMemberOnItsOwnFold) {
  const TempDir folder;
  const PredictionsCase given;
  given.write(folder / "predictions.h5");
  const PredictionsFile file(folder / "predictions.h5");
  const std::vector<MemberScores::OutOfFold> scores = out_of_fold_scores(file);
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
}  // namespace tpudist::test
