#include "launch/sweep/choice.hpp"

#include <cmath>

#include "core/error.hpp"
#include "tests/support/matchers.hpp"

namespace tpudist::test {
namespace {

// One experiment with `variants` variants of two seeds each.
struct Case {
  explicit Case(const std::vector<std::vector<double>>& scores) {
    record.choice = ChoiceScore::valid;
    record.experiments = {"e"};
    for (std::size_t v = 0; v < scores.size(); ++v) {
      record.variant_experiment.push_back(0);
      record.variant_group.push_back(0);
      record.labels.push_back("v");
      for (std::size_t s = 0; s < scores[v].size(); ++s) {
        SweepRun run;
        run.index = static_cast<int>(runs.size());
        run.variant = static_cast<int>(v);
        run.seed = s;
        runs.push_back(run);
        RunResult result;
        result.finished = true;
        result.members = {{0, false, scores[v][s], std::nullopt}};
        results.push_back(result);
      }
    }
  }
  std::vector<int> chosen(int keep) const { return chosen_variants(record, runs, results, keep); }

  SweepRecord record;
  std::vector<SweepRun> runs;
  std::vector<std::optional<RunResult>> results;
};

TEST(Choice, KeepsTheBestPartOfTheVariants) {
  const Case c({{0.1, 0.3}, {0.5, 0.5}, {0.4, 0.2}, {0.3, 0.3}, {0.0, 0.1}});
  EXPECT_THAT(c.chosen(0), ElementsAre(1));
  EXPECT_THAT(c.chosen(2), ElementsAre(1, 2, 3));  // of equals the first
  EXPECT_THAT(c.chosen(5), ElementsAre(1));
}

TEST(Choice, AVariantWithAFailedRunComesLast) {
  Case c({{0.9, 0.9}, {0.2, 0.2}, {0.1, 0.1}});
  c.results[1]->finished = false;
  EXPECT_THAT(c.chosen(0), ElementsAre(1));
  EXPECT_THAT(c.chosen(2), ElementsAre(1, 2));
  c.results[2].reset();
  c.results[4]->members[0].valid.reset();
  EXPECT_THAT(c.chosen(2), ElementsAre(0, 1));  // each has a seed with a score
}

TEST(Choice, WithoutAnyScoreThereIsNone) {
  Case c({{0.9}, {0.2}});
  c.record.choice = ChoiceScore::out_of_fold;
  EXPECT_THROW(c.chosen(0), Error);
}

TEST(Choice, EachExperimentHasItsOwnBest) {
  Case c({{0.9, 0.9}, {0.2, 0.2}, {0.1, 0.1}, {0.3, 0.3}});
  c.record.experiments = {"a", "b"};
  c.record.variant_experiment = {0, 0, 1, 1};
  EXPECT_THAT(c.chosen(0), ElementsAre(0, 3));
}

TEST(Choice, SummariesGoOverSeedsOfWhichAllRunsHaveScores) {
  Case c({{0.2, 0.4}});
  c.runs[0].seed = c.runs[1].seed = 1;  // two folds of one seed
  VariantSummary s = summarise(c.runs, c.results, ChoiceScore::valid)[0];
  EXPECT_NEAR(*s.mean, 0.3, 1e-12);
  EXPECT_EQ(s.seeds, 1);
  EXPECT_FALSE(s.deviation);
  c.runs[1].seed = 2;
  s = summarise(c.runs, c.results, ChoiceScore::valid)[0];
  EXPECT_NEAR(*s.mean, 0.3, 1e-12);
  EXPECT_NEAR(*s.deviation, std::sqrt(0.02), 1e-12);
  c.runs[1].seed = 1;
  c.results[1].reset();  // a fold is missing
  s = summarise(c.runs, c.results, ChoiceScore::valid)[0];
  EXPECT_FALSE(s.mean);
  EXPECT_EQ(s.finished, 1);
}

RunResult::Member held_out(int number, double score, int graphs) {
  RunResult::Member member{number, false, std::nullopt, score};
  member.out_of_fold_graphs = graphs;
  return member;
}

// The mean over graphs and not that of fold means, wherever the members of a training were trained.
TEST(Choice, OutOfFoldScoresGoOverGraphs) {
  Case fused({{0, 0}}), split({{0, 0, 0, 0}});
  for (std::size_t i = 0; i < 4; ++i) {
    split.runs[i].seed = i / 2;
    split.runs[i].folds = 2;
    split.results[i]->members = {
        held_out(static_cast<int>(i % 2), 0.2 + 0.1 * static_cast<double>(i), i % 2 == 0 ? 1 : 3)};
  }
  for (std::size_t seed = 0; seed < 2; ++seed) {
    fused.runs[seed].folds = 2;
    fused.results[seed]->members = {split.results[2 * seed]->members[0],
                                    split.results[2 * seed + 1]->members[0]};
  }
  for (const Case* c : {&fused, &split}) {
    const VariantSummary s = summarise(c->runs, c->results, ChoiceScore::out_of_fold)[0];
    // (0.2 + 3 * 0.3) / 4 = 0.275, (0.4 + 3 * 0.5) / 4 = 0.475
    EXPECT_NEAR(*s.mean, 0.375, 1e-12);
    EXPECT_NEAR(*s.deviation, 0.2 / std::sqrt(2.0), 1e-12);
    EXPECT_EQ(s.seeds, 2);
    EXPECT_EQ(s.graphs, 4);
  }
  // Results of older versions do not know their numbers of graphs: all members count alike.
  for (auto& result : fused.results)
    for (RunResult::Member& member : result->members) member.out_of_fold_graphs = -1;
  EXPECT_NEAR(*summarise(fused.runs, fused.results, ChoiceScore::out_of_fold)[0].mean, 0.35, 1e-12);
  // Without the member of a fold there is no score of all graphs.
  fused.results[0]->members[1].failed = true;
  EXPECT_EQ(summarise(fused.runs, fused.results, ChoiceScore::out_of_fold)[0].seeds, 1);
}

TEST(Choice, AVariantThatIsScoredOnFewerGraphsComesLast) {
  Case c({{0.9, 0.9}, {0.2, 0.2}});
  for (std::size_t i = 0; i < 4; ++i) c.results[i]->members[0].valid_graphs = i == 0 ? 2 : 3;
  EXPECT_THAT(c.chosen(0), ElementsAre(1));
  c.results[3]->members[0].valid_graphs = -1;  // unknown
  EXPECT_THAT(c.chosen(0), ElementsAre(0));
}

TEST(Choice, NothingIsChosenBetweenScoresOfDifferentGraphs) {
  Case c({{0.9}, {0.2}});
  c.record.variant_group = {0, 1};
  EXPECT_THROW(c.chosen(0), ConfigError);
}

TEST(Choice, MembersThatFailedDoNotCount) {
  RunResult result;
  result.finished = true;
  result.members = {{0, false, 0.5, std::nullopt}, {1, true, std::nullopt, std::nullopt}};
  EXPECT_EQ(result.valid(), 0.5);
  result.members[1].failed = false;  // it has no score, though it should
  EXPECT_FALSE(result.valid());
}

// The mean of survivors is shown but does not win.
TEST(Choice, AVariantWithAFailedMemberComesLast) {
  Case c({{0.9, 0.9}, {0.2, 0.2}});
  c.results[0]->members.push_back({1, true, std::nullopt, std::nullopt});
  const VariantSummary s = summarise(c.runs, c.results, ChoiceScore::valid)[0];
  EXPECT_EQ(s.mean, 0.9);
  EXPECT_EQ(s.failed_members, 1);
  EXPECT_FALSE(s.complete);
  EXPECT_THAT(c.chosen(0), ElementsAre(1));
}

}  // namespace
}  // namespace tpudist::test
