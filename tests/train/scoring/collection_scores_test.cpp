#include "train/scoring/collection_scores.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>
#include <numeric>

#include "core/error.hpp"
#include "core/file_system.hpp"
#include "core/log.hpp"
#include "data/loading/seen_graphs.hpp"
#include "results/records/predictions_file.hpp"
#include "tests/support/thrown.hpp"
#include "tests/train/tiny_data.hpp"
#include "tests/train/tiny_run.hpp"
#include "train/units/training_setup.hpp"

namespace tpudist::test {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::SizeIs;
using Scores = std::vector<std::vector<double>>;  // [graphs][c]

// A trained run of some members.
TrainedRun trained(const std::filesystem::path& folder, std::vector<std::string> overrides = {}) {
  overrides.insert(overrides.begin(), {"ensemble.folds=none", "train.steps=3"});
  run(tiny_experiment(overrides), folder);
  return open_run(folder);
}

std::vector<CollectionResult> score(const std::vector<TrainedRun>& runs,
                                    const ScoreRequest& request) {
  OneRank alone(2);
  return score_runs(runs, request, alone.context);
}

// The score of every row by one member, all rows of a graph in one dense plan.
Scores scores_of(const TrainedRun& run, int member, const std::string& split) {
  ThreadPool pool(1);
  const Dataset data = Dataset::open(run.experiment.data.evaluation(split), pool);
  const Network network(run.experiment.network, run.experiment.data.collection.schema, -1, pool);
  const UnitBuilder units(data, network, PlanMode::dense);
  Scores scores;
  for (int g = 0; g < data.size(); ++g) {
    SlateRows slate{g, std::vector<std::int64_t>(data.rows(g))};
    std::iota(slate.rows.begin(), slate.rows.end(), 0);
    const UnitScores unit =
        network.scores(run.flat, member, 1, units.build(std::span(&slate, 1)).input);
    std::vector<double>& row = scores.emplace_back();
    for (const double delta : unit.delta) row.push_back(unit.common[0] + delta);
  }
  return scores;
}

// The mean of several members' scores, of all of the same weight.
Scores mean_of(const std::vector<Scores>& members) {
  Scores mean = members.front();
  for (std::size_t g = 0; g < mean.size(); ++g) {
    for (std::size_t c = 0; c < mean[g].size(); ++c) {
      double sum = 0;
      for (const Scores& scores : members) sum += scores[g][c];
      mean[g][c] = sum / static_cast<double>(members.size());
    }
  }
  return mean;
}

void expect_near(const Scores& actual, const Scores& expected) {
  ASSERT_EQ(actual.size(), expected.size());
  for (std::size_t g = 0; g < actual.size(); ++g) {
    ASSERT_EQ(actual[g].size(), expected[g].size());
    for (std::size_t c = 0; c < actual[g].size(); ++c) {
      EXPECT_NEAR(actual[g][c], expected[g][c], 1e-4 + 1e-7 * std::abs(expected[g][c]))
          << "graph " << g << ", row " << c;
    }
  }
}

// The mean of all members; tests/statistics/rejection_test.cpp tests how members are rejected.
const ScoreRequest kMean{
    .split = "valid", .means = true, .judgement = {{CombinationRule::mean}, /*keep_all=*/true}};

TEST(ScoreRuns, GiveTheMeanOverTheMembersOfARun) {
  const TempDir folder;
  const std::vector<TrainedRun> runs{trained(folder / "run")};
  const auto results = score(runs, kMean);
  ASSERT_THAT(results, SizeIs(1));
  EXPECT_EQ(results[0].collection, "layout:xla:random");
  expect_near(results[0].mean,
              mean_of({scores_of(runs[0], 0, "valid"), scores_of(runs[0], 1, "valid"),
                       scores_of(runs[0], 2, "valid")}));
  ASSERT_TRUE(results[0].evaluation.has_value());
  EXPECT_THAT(results[0].evaluation->used, ElementsAre(true, true, true));
}

TEST(ScoreRuns, CountEveryMemberOfEveryRunOnce) {
  const TempDir folder;
  const std::vector<TrainedRun> runs{
      trained(folder / "two", {"ensemble.members=2"}),
      trained(folder / "one", {"ensemble.members=1", "optimizer.lr=0.01"})};
  const auto results = score(runs, kMean);
  ASSERT_THAT(results, SizeIs(1));
  expect_near(results[0].mean,
              mean_of({scores_of(runs[0], 0, "valid"), scores_of(runs[0], 1, "valid"),
                       scores_of(runs[1], 0, "valid")}));
}

// A copy of a run's folder, a link to it, or overlapping slices of one ensemble.
TEST(ScoreRuns, RefuseOneTrainingGivenTwice) {
  const TempDir folder;
  const TrainedRun run = trained(folder / "run", {"ensemble.members=2"});
  TrainedRun copy = run;
  copy.path = folder / "copy";
  const auto message = [](const std::vector<TrainedRun>& runs) {
    return test::message_of<ConfigError>([&] { score(runs, kMean); });
  };
  EXPECT_THAT(message({run, copy}), AllOf(HasSubstr("copy member 0 has the weights of "),
                                          HasSubstr("run member 0: "), HasSubstr("give it once")));
  // Of another recipe it is named only, and so is another member of the run with the same weights.
  copy.experiment.entries.push_back({"another.setting", "7"});
  EXPECT_EQ(score({run, copy}, kMean)[0].evaluation->used.size(), 4u);
  TrainedRun twins = run;
  std::copy_n(twins.flat.begin(), twins.flat.size() / 2,
              twins.flat.begin() + static_cast<std::ptrdiff_t>(twins.flat.size() / 2));
  EXPECT_EQ(score({twins}, kMean)[0].evaluation->used.size(), 2u);
}

// The scores that are printed and written say which of the two means they are.
TEST(ScoreRuns, TellMembersTogetherFromTheMeanOfMembers) {
  const TempDir folder;
  const std::vector<TrainedRun> runs{trained(folder / "run", {"ensemble.members=2"})};
  const Evaluation evaluation = *score(runs, kMean)[0].evaluation;
  const std::vector<double> means = evaluation.member_means();
  EXPECT_NEAR(evaluation.mean_of_members(), (means[0] + means[1]) / 2, 1e-12);
  EXPECT_THAT(
      evaluation_table(evaluation),
      AllOf(HasSubstr(fmt::format("  members together  {:.4f}\n", evaluation.ensemble_mean())),
            HasSubstr(fmt::format("  mean of members   {:.4f}\n", evaluation.mean_of_members()))));
  EXPECT_EQ(evaluation_json(evaluation).at("mean_of_members"), evaluation.mean_of_members());
}

TEST(ScoreRuns, CombineMembersByTheRuleAskedFor) {
  const TempDir folder;
  const std::vector<TrainedRun> runs{trained(folder / "run", {"ensemble.members=2"})};
  const Combination ranks{CombinationRule::rank_mean};
  const auto results =
      score(runs, {.split = "valid", .means = true, .judgement = {ranks, /*keep_all=*/true}});
  const Scores first = scores_of(runs[0], 0, "valid"), second = scores_of(runs[0], 1, "valid");
  ASSERT_EQ(results[0].mean.size(), first.size());
  for (std::size_t g = 0; g < first.size(); ++g)
    EXPECT_EQ(results[0].mean[g], combine_scored(std::vector{first[g], second[g]}, ranks));
  EXPECT_THAT(evaluation_table(*results[0].evaluation), HasSubstr("of the rank_mean of 2 members"));
}

TEST(ScoreRuns, LeaveOutMembersThatDidNotLearnAndCombineByZScore) {
  const TempDir folder;
  std::vector<TrainedRun> runs{trained(folder / "run")};
  runs[0].losses = {{2, 1, 0.5}, {1, 2, 0.5}, {1, 1.2, 0.5}};
  const auto results = score(runs, {.split = "valid", .means = true});
  EXPECT_FALSE(results[0].judgement.used[1]);
  EXPECT_THAT(results[0].evaluation->left_out[1], HasSubstr("its training loss did not fall"));
  EXPECT_THAT(evaluation_table(*results[0].evaluation), HasSubstr("of the z_score of"));
  EXPECT_THAT(judgement_notes(results[0].judgement), HasSubstr("rejected  member 1"));
}

// Which lines metrics.jsonl has, or whether there is one, decides nothing.
TEST(ScoreRuns, JudgeMembersByTheLossesOfAllSteps) {
  const TempDir folder;
  std::vector<TrainedRun> runs;
  for (const char* every : {"1", "10"})
    runs.push_back(
        trained(folder / every, {"train.steps=20", fmt::format("train.log_every={}", every)}));
  std::filesystem::remove(folder / "10/metrics.jsonl");
  runs.push_back(open_run(folder / "10"));
  for (const TrainedRun& run : runs) {
    ASSERT_THAT(run.losses, SizeIs(3));
    for (std::size_t m = 0; m < 3; ++m) {
      EXPECT_TRUE(std::isfinite(run.losses[m].margin));
      EXPECT_EQ(run.losses[m].first, runs[0].losses[m].first);
      EXPECT_EQ(run.losses[m].last, runs[0].losses[m].last);
    }
  }
}

// The graphs of the other split under --data: by name as trained on, and by family in a warning.
TEST(ScoreRuns, KnowWhatMembersWereTrainedOn) {
  const TempDir folder;
  std::vector<TrainedRun> runs{trained(folder / "run", {"ensemble.members=2"})};
  const auto title = [&] {
    return score(runs, {.split = "valid"})[0].judgement.tables.at(0).title;
  };
  const auto warned = [&] {
    ::testing::internal::CaptureStderr();
    set_up_logging(0, 1);  // on standard error
    EXPECT_NE(title(), "");
    spdlog::default_logger()->flush();
    return ::testing::internal::GetCapturedStderr();
  };
  EXPECT_EQ(title(), "valid split");
  GraphEntry graph = list_graphs(test::tiny_shards(), {"layout:xla:random"}, "valid").front();
  const std::filesystem::path file = folder / "run/seen_graphs.json";
  SeenGraphs seen = read_seen_graphs(file);
  const TrainedOn read_all = seen.trained_on;
  EXPECT_FALSE(read_all.empty());
  EXPECT_FALSE(seen.trained_on.knows(graph, 0));
  seen.trained_on = {};
  seen.trained_on.add(graph, {false, true});
  write_file_atomically(file, seen_graphs_text(seen));
  EXPECT_EQ(title(), "valid split, trained on");
  EXPECT_THAT(warned(), HasSubstr("run was trained on " + graph.name + " (1 of 2 graphs): "));
  seen.trained_on = {};
  graph.source.hash = 1;  // another graph of this name, in a split of training graphs
  graph.nodes += 1;
  seen.trained_on.add(graph, {true, true});
  write_file_atomically(file, seen_graphs_text(seen));
  EXPECT_EQ(title(), "valid split");
  EXPECT_THAT(warned(), HasSubstr("run was trained on model family "));
  std::ofstream(file) << "{";
  EXPECT_THAT(warned(), AllOf(HasSubstr("not known on which graphs"), HasSubstr("is damaged")));
  std::filesystem::remove(file);  // as where it was imported: its shards tell
  EXPECT_EQ(trained_on(runs[0], {}), read_all);
  EXPECT_EQ(title(), "valid split");
  runs[0].selection_hash ^= 1;
  EXPECT_THAT(warned(), HasSubstr("has other training graphs now"));
}

TEST(ScoreRuns, WriteTheScoresOfAllMembers) {
  const TempDir folder;
  run(tiny_experiment({"train.steps=3"}), folder / "run");
  const std::vector<TrainedRun> runs{open_run(folder / "run")};
  ScoreRequest request = kMean;
  request.scores = folder / "scores.h5";
  for (const std::string split : {"valid", "train", "test"}) {
    request.split = split;
    const auto results = score(runs, request);
    const PredictionsFile file(folder / "scores.h5");
    ASSERT_EQ(file.header().graphs.size(), results[0].graphs.size());
    const FoldTable folds =
        training_folds(runs[0].experiment.ensemble, runs[0].experiment.data.training());
    for (std::size_t g = 0; g < results[0].graphs.size(); ++g) {
      const PredictionEntry& graph = file.header().graphs[g];
      EXPECT_EQ(graph.split, split);
      EXPECT_EQ(graph.name, results[0].graphs[g]);
      for (int m = 0; m < 3; ++m) {
        EXPECT_EQ(graph.held_out[m],
                  split != "train" || folds.find(graph.name)->fold == m % folds.folds);
      }
      const PredictionRows predictions = file.read(static_cast<int>(g));
      for (std::size_t c = 0; c < predictions.configs.size(); ++c) {
        EXPECT_NEAR(
            (predictions.scores[0][c] + predictions.scores[1][c] + predictions.scores[2][c]) / 3,
            results[0].mean[g][c], 1e-4);
      }
    }
  }
}

TEST(ScoreRuns, LeaveOutMembersThatFailed) {
  const TempDir folder;
  std::vector<TrainedRun> runs{trained(folder / "run")};
  const Scores first = scores_of(runs[0], 0, "valid"), last = scores_of(runs[0], 2, "valid");
  runs[0].use[1] = false;
  const auto length = static_cast<std::ptrdiff_t>(runs[0].flat.size() / 3);
  std::fill_n(runs[0].flat.begin() + length, length, std::nanf(""));
  const auto results = score(runs, kMean);
  expect_near(results.at(0).mean, mean_of({first, last}));
  ASSERT_TRUE(results[0].evaluation.has_value());
  EXPECT_THAT(results[0].evaluation->used, ElementsAre(true, false, true));
  EXPECT_TRUE(std::isfinite(results[0].evaluation->ensemble_mean()));
}

// One graph of two: the mean over the other would be that of an easier task.
TEST(AddGraphs, AMemberWithAScoreThatIsNotFiniteHasNoMean) {
  ThreadPool pool(1);
  const Dataset data = Dataset::open(tiny_experiment().data.evaluation("valid"), pool);
  std::vector<ScoresByMember> predictions;
  for (int g = 0; g < data.size(); ++g) {
    ScoresByMember& graph = predictions.emplace_back();
    graph.graph = g;
    graph.rows.resize(data.rows(g));
    std::iota(graph.rows.begin(), graph.rows.end(), 0);
    graph.scores.assign(2, std::vector<double>(graph.rows.begin(), graph.rows.end()));
  }
  ASSERT_GT(predictions.size(), 1u);
  predictions[1].scores[1][0] = std::nan("");
  Evaluation evaluation;
  evaluation.used = evaluation.finite = {true, true};
  evaluation.members.resize(2);
  add_graphs(evaluation, predictions, data, pool);
  const std::vector<double> means = evaluation.member_means();
  EXPECT_TRUE(std::isfinite(means[0]));
  EXPECT_TRUE(std::isnan(means[1]));
  EXPECT_EQ(evaluation.mean_of_members(), means[0]);
  for (const GraphMetrics& graph : evaluation.ensemble) EXPECT_TRUE(std::isfinite(graph.opa));
}

TEST(ScoreRuns, KeepCollectionsApartInTheOrderOfTheRuns) {
  const TempDir folder;
  const std::vector<TrainedRun> runs{
      trained(folder / "tile", {"data.collection=tile:xla", "model.preset=latenciaga_tile"}),
      trained(folder / "layout")};
  const auto results = score(runs, {.split = "test", .means = true});
  ASSERT_THAT(results, SizeIs(2));
  EXPECT_EQ(results[0].collection, "tile:xla");
  EXPECT_EQ(results[1].collection, "layout:xla:random");
  EXPECT_FALSE(results[0].evaluation.has_value());  // nobody knows the run times of a test split

  const Submission submission = make_submission(results);
  ASSERT_EQ(submission.rows().size(), results[0].graphs.size() + results[1].graphs.size());
  auto row = submission.rows().begin();
  for (const CollectionResult& result : results) {
    for (std::size_t g = 0; g < result.graphs.size(); ++g, ++row) {
      EXPECT_EQ(row->id, result.collection + ":" + result.graphs[g]);
      const std::vector<double>& mean = result.mean[g];
      const bool tile = result.collection == "tile:xla";
      ASSERT_EQ(row->configs.size(), tile ? std::min<std::size_t>(5, mean.size()) : mean.size());
      // Fastest first: the lowest score is the best.
      for (std::size_t i = 1; i < row->configs.size(); ++i) {
        EXPECT_LE(mean.at(row->configs[i - 1]), mean.at(row->configs[i]));
      }
      EXPECT_EQ(mean.at(row->configs[0]), *std::ranges::min_element(mean));
    }
  }
}

TEST(ScoreRuns, RefuseWhatDoesNotFitTogether) {
  const TempDir folder;
  const TrainedRun one = trained(folder / "one");
  EXPECT_THAT(test::message_of<ConfigError>([&] { score({one}, {.split = "tset"}); }),
              HasSubstr("'tset'"));
  TrainedRun other = one;
  other.path = "other/run";
  other.experiment.data.exclude_valid = {"nothing_is_called_so"};
  EXPECT_THAT(test::message_of<ConfigError>([&] {
                score({one, other}, {.split = "valid"});
              }),
              HasSubstr("other/run"));
}

}  // namespace
}  // namespace tpudist::test
