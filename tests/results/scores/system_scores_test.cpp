#include "results/scores/system_scores.hpp"

#include <gmock/gmock.h>

#include <nlohmann/json.hpp>

#include "core/error.hpp"
#include "results/scores/comparison_text.hpp"
#include "tests/results/scores/system_case.hpp"
#include "tests/support/thrown.hpp"

namespace tpudist {
namespace {

using test::PredictionsCase;
using test::TempDir;
using test::write_system_run;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

// Three runs of each of two systems, of which A ranks better.
class Systems : public ::testing::Test {
 protected:
  Systems() {
    for (int seed = 1; seed <= 3; ++seed) {
      a_.push_back(write_system_run(folder_ / ("a" + std::to_string(seed)), seed, 4, 3).string());
      b_.push_back(write_system_run(folder_ / ("b" + std::to_string(seed)), seed, 12, 7).string());
    }
  }

  std::string refusal(const std::vector<std::string>& a, const std::vector<std::string>& b) const {
    return test::message_of<Error>(
        [&] { system_pair(read_system(a), read_system(b), EvaluatedOn::valid); });
  }

  TempDir folder_;
  std::vector<std::string> a_, b_;
};

TEST_F(Systems, AreComparedByTrainings) {
  const SystemPair pair = system_pair(read_system(a_), read_system(b_), EvaluatedOn::valid);
  EXPECT_EQ(pair.a.score, TrainingScore::mean_of_members);
  EXPECT_EQ(pair.a.scores.run_count(), 3);
  EXPECT_EQ(pair.a.scores.graph_count(), 6);
  EXPECT_EQ(pair.a.scores.family_count(), 4);
  ASSERT_TRUE(pair.a.together);
  EXPECT_GT(mean_score(*pair.a.together), mean_score(pair.a.scores));
  const Comparison found = compare(pair.a.scores, pair.b.scores);
  EXPECT_GT(found.difference, 0.05);
  const std::string text = comparison_text(pair, found);
  EXPECT_THAT(text, AllOf(::testing::StartsWith("A is better on these graphs: +"),
                          HasSubstr("kendall_tau, valid split: 6 graphs of 4 families"),
                          HasSubstr("mean of members, 3 trainings of 2 members"),
                          HasSubstr("members together: A 0."),
                          HasSubstr("these graphs, if trained again (A - B)"),
                          HasSubstr("; this test decides"),
                          HasSubstr("not valid: spreads of trainings differ by more than 3 to 1"),
                          HasSubstr("no p: with 4 families p cannot fall below 0.125"),
                          HasSubstr("0 of 3 trainings collapsed, so the rate is at most 63 %"),
                          HasSubstr("if A and B differ far more on a few families"),
                          Not(HasSubstr("families without")), HasSubstr("the next family"),
                          HasSubstr("if nothing was known before, A leads on ")));
  const auto json = comparison_json(pair, found);
  EXPECT_TRUE(json.at("these_graphs").at("exchanged_labels").is_null());
  EXPECT_EQ(json.at("a").at("runs").size(), 3u);
  EXPECT_EQ(json.at("difference"), found.difference);
  EXPECT_TRUE(json.at("these_graphs").at("margin").is_null());
}

TEST_F(Systems, AreComparedByMembersTogetherOnRequest) {
  const SystemPair pair = system_pair(read_system(a_), read_system(b_), EvaluatedOn::valid,
                                      TrainingScore::members_together);
  EXPECT_EQ(pair.a.scores.run_count(), 3);
  EXPECT_FALSE(pair.a.together);
  EXPECT_THAT(comparison_text(pair, compare(pair.a.scores, pair.b.scores)),
              HasSubstr("members together, 3 trainings of 2 members"));
}

// All differences are the better side minus the other, under a head that says which.
TEST_F(Systems, ShowTheBetterOneMinusTheOther) {
  const auto text_of = [&](const auto& a, const auto& b) {
    const SystemPair pair = system_pair(read_system(a), read_system(b), EvaluatedOn::valid);
    return comparison_text(pair, compare(pair.a.scores, pair.b.scores));
  };
  std::string one = text_of(a_, b_), other = text_of(b_, a_);
  EXPECT_THAT(
      other, AllOf(HasSubstr("\n  B - A  +0."), HasSubstr("these graphs, if trained again (B - A)"),
                   HasSubstr("other families, if trained again (B - A)"), Not(HasSubstr("A - B")),
                   Not(HasSubstr("interval             -"))));
  // With the letters exchanged the lines of differences are the same.
  for (char& letter : other) letter = letter == 'A' ? 'B' : letter == 'B' ? 'A' : letter;
  const auto differences = [](const std::string& text) {
    return text.substr(text.find("these graphs, if trained again"),
                       text.find("\n  A: ") - text.find("these graphs, if trained again"));
  };
  EXPECT_EQ(differences(one), differences(other.replace(other.find("\n  B: "), 4, "\n  A")));
}

// Trainings that score alike: no interval of width 0 and no p of 0, but that it is not known.
TEST_F(Systems, ThatScoreAlikeAreNotSure) {
  SystemPair pair = system_pair(read_system(a_), read_system(b_), EvaluatedOn::valid);
  for (SystemScores* side : {&pair.a, &pair.b}) {
    for (auto& own : side->scores.scores) own.assign(3, side == &pair.a ? 0.7 : 0.6);
  }
  const Comparison found = compare(pair.a.scores, pair.b.scores);
  const std::string text = comparison_text(pair, found);
  EXPECT_THAT(
      text,
      AllOf(::testing::StartsWith("A scores 0.1000 higher than B on these graphs; trainings of"),
            HasSubstr("none: scores of all trainings are alike, so their spread is not known"),
            HasSubstr("none: differences of all families are alike"),
            HasSubstr("with 3 and 3 trainings p cannot fall below 0.1"),
            Not(HasSubstr("is better")), Not(HasSubstr("t test")), Not(HasSubstr(" leads on ")),
            Not(HasSubstr("nan"))));
  EXPECT_THAT(plan_text(plan_difference(pair.a.scores, pair.b.scores, 0.1)),
              AllOf(HasSubstr("not enough: scores of all trainings are alike"),
                    HasSubstr("not enough: differences of all families are alike")));
  const auto json = nlohmann::json::parse(comparison_json(pair, found).dump());
  EXPECT_TRUE(json.at("these_graphs").at("p").is_null());
  EXPECT_TRUE(json.at("these_graphs").at("interval").at("low").is_null());
  EXPECT_TRUE(json.at("other_families").at("next_family").at("chance").is_null());
}

// The training graphs are ALBERT's and ELECTRA's.
TEST_F(Systems, OfOneArchitectureSaySoOnce) {
  const SystemPair pair = system_pair(read_system(a_), read_system(b_), EvaluatedOn::out_of_fold);
  EXPECT_EQ(pair.a.scores.family_count(), 2);
  const std::string text = comparison_text(pair, compare(pair.a.scores, pair.b.scores));
  EXPECT_EQ(text.find("2 of 2 model families are BERTs"),
            text.rfind("2 of 2 model families are BERTs"));
  EXPECT_THAT(text, HasSubstr("2 of 2 model families are BERTs"));
}

// No interval contains another draw of nodes.
TEST_F(Systems, OfDrawnNodesSaySo) {
  std::vector<RunRecord> runs = read_system(a_);
  EXPECT_EQ(drawn_nodes_text(runs), "");
  for (RunRecord& run : runs) run.config.push_back({"data.reduce.max_nodes", "15"});
  EXPECT_THAT(drawn_nodes_text(runs), HasSubstr("one draw of their nodes"));
  EXPECT_THAT(system_pair(runs, read_system(b_), EvaluatedOn::valid).a.notes,
              ::testing::Contains(HasSubstr("evaluate --draws 10")));
  for (RunRecord& run : runs) run.config.push_back({"data.reduce.drawn", "trained"});
  EXPECT_EQ(drawn_nodes_text(runs), "");
}

// Members are no other runs: what they say is named so, and has no p value.
TEST_F(Systems, SayWhereTheyCombineMembersByOtherRules) {
  PredictionsCase other = test::system_run(1, 4, 7);
  other.header.combination = Combination{CombinationRule::mean};
  other.write(folder_ / "mean.h5");
  const std::vector<std::string> by_mean{(folder_ / "mean.h5").string()};
  const SystemPair pair = system_pair(read_system(a_), read_system(by_mean), EvaluatedOn::valid);
  EXPECT_THAT(pair.a.notes, ElementsAre(AllOf(HasSubstr("several rules of combination: mean ("),
                                              HasSubstr("mean.h5), z_score ("))));
}

TEST_F(Systems, OfOneTrainingEachSayWhatIsMissing) {
  const SystemPair pair =
      system_pair(read_system({a_.data(), 1}), read_system({b_.data(), 1}), EvaluatedOn::valid);
  ASSERT_TRUE(pair.a.members_of_one);
  EXPECT_EQ(pair.a.members_of_one->run_count(), 2);
  EXPECT_EQ(pair.a.scores.run_count(), 1);
  EXPECT_THAT(comparison_text(pair, compare(pair.a.scores, pair.b.scores)),
              AllOf(HasSubstr("a side has one training"),
                    HasSubstr("train them with other seeds (seed.init, seed.order)"),
                    HasSubstr("these graphs, other members of these trainings"),
                    Not(HasSubstr("if trained again")),
                    HasSubstr("these models only where a side has one training"),
                    Not(HasSubstr("this test decides"))));
  EXPECT_THAT(system_text(pair.a),
              AllOf(HasSubstr("one training does not show how others would score"),
                    HasSubstr("other members of this training"), HasSubstr("this model only")));
}

// Members of a seed that a sweep split into runs of their own are one training.
TEST_F(Systems, OfSplitTrainingsEqualThoseOfFusedOnes) {
  std::vector<std::string> split, bare;
  for (int seed = 1; seed <= 3; ++seed) {
    for (int member = 0; member < 2; ++member) {
      const std::string name = std::to_string(seed) + "-" + std::to_string(member);
      split.push_back(test::write_split_run(folder_ / ("s" + name), seed, 4, member).string());
    }
  }
  for (const EvaluatedOn judged : {EvaluatedOn::valid, EvaluatedOn::out_of_fold}) {
    const SystemScores fused = system_scores(read_system(a_), judged),
                       own = system_scores(read_system(split), judged);
    EXPECT_EQ(own.scores.scores, fused.scores.scores);
    EXPECT_EQ(own.scores.rows.size(), 3u);
    ASSERT_EQ(own.together.has_value(), fused.together.has_value());
    if (own.together) EXPECT_EQ(own.together->scores, fused.together->scores);
  }
}

TEST_F(Systems, ThatShareAnOrderOfSlatesSaySo) {
  auto run = test::system_run(1, 4);
  run.header.runs[0].init_seed = 7;
  run.header.runs[0].parameter_hash = 70;
  std::string text = test::config_text(7, 0, 2);
  text.replace(text.find("order: 7"), 8, "order: 1");
  test::write_text(folder_ / "c" / "config.yaml", text);
  run.write(folder_ / "c" / "predictions.h5");
  const std::vector<std::string> inputs{a_[0], (folder_ / "c").string()};
  EXPECT_THAT(system_text(system_scores(read_system(inputs), EvaluatedOn::valid)),
              HasSubstr("share seed.order 1: they saw the same slates"));
  EXPECT_TRUE(system_scores(read_system(a_), EvaluatedOn::valid).notes.empty());
}

TEST_F(Systems, HaveTrainingsOutOfFold) {
  const SystemScores found = system_scores(read_system(a_), EvaluatedOn::out_of_fold);
  EXPECT_EQ(found.scores.run_count(), 3);
  EXPECT_EQ(found.scores.graph_count(), 2);
  EXPECT_NE(found.scores.folds.front(), found.scores.folds.back());
}

TEST_F(Systems, LeaveOutGraphsThatHaveTwoEqualConfigurations) {
  auto run = test::system_run(9, 4);
  auto& predictions = run.graphs[4];
  run.header.graphs[4].configs = run.header.graphs[4].rows = 2;
  predictions.configs = {0, 1};
  predictions.runtime = {10, 10};
  predictions.scores = {{1, 2}, {1, 2}};
  test::write_text(folder_ / "two" / "config.yaml", test::config_text(9, 0, 2));
  run.write(folder_ / "two" / "predictions.h5");
  const std::string input = (folder_ / "two").string();
  const SystemScores found = system_scores(read_system({&input, 1}), EvaluatedOn::valid);
  EXPECT_EQ(found.scores.graph_count(), 5);
  EXPECT_THAT(found.scores.left_out,
              ::testing::Contains(HasSubstr("inception_v3_batch_128_train")));
  EXPECT_THAT(refusal(a_, {input}), HasSubstr("the data differ"));
}

// Files of an older version do not say what they began from.
TEST_F(Systems, RefuseRunsThatAreKnownToHaveBegunFromOtherWeights) {
  const auto file = [&](int seed, std::uint64_t init_hash) {
    auto run = test::system_run(seed, 4);
    run.header.runs[0].init_hash = init_hash;
    const std::filesystem::path path = folder_ / (std::to_string(seed) + ".h5");
    run.write(path);
    return path.string();
  };
  const std::string first = file(20, 5);
  EXPECT_THAT(refusal({first, file(21, 6)}, b_), HasSubstr("are runs of different settings"));
  EXPECT_THAT(refusal({first, file(22, 0)}, b_), Not(HasSubstr("are runs of different settings")));
}

TEST_F(Systems, OfOneRecipeSaySo) {
  const auto notes = [&](const std::vector<std::string>& a, const std::vector<std::string>& b) {
    return system_pair(read_system(a), read_system(b), EvaluatedOn::valid).a.notes;
  };
  EXPECT_THAT(
      notes({a_[0]}, {a_[1]}),
      ElementsAre("A and B have equal settings: what they differ by is chance, not a recipe"));
  EXPECT_THAT(notes(a_, b_), ::testing::IsEmpty());
}

TEST_F(Systems, RefuseWhatIsNotOneSystem) {
  EXPECT_THAT(refusal({a_[0], b_[0]}, {b_[1]}), HasSubstr("are runs of different settings"));
  EXPECT_THAT(refusal({a_[0], a_[0]}, b_), HasSubstr("one and the same training"));
  EXPECT_THAT(refusal(a_, {a_[1]}), HasSubstr("stands on both sides"));
  EXPECT_EQ(refusal(a_, {a_[2], a_[1], a_[0]}),
            "A and B are the same trainings: there is nothing to compare");
  EXPECT_THAT(refusal({a_[0] + "x"}, b_), HasSubstr("no such folder"));
  EXPECT_THAT(refusal({a_[0] + ":1"}, b_), HasSubstr("is no sweep"));
}

}  // namespace
}  // namespace tpudist
