#include "results/scores/system_scores.hpp"

#include <nlohmann/json.hpp>

#include "core/error.hpp"
#include "results/scores/comparison_text.hpp"
#include "tests/results/scores/system_case.hpp"
#include "tests/support/matchers.hpp"

namespace tpudist::test {
namespace {

// Three runs of each of two systems, of which A ranks better.
class Systems : public FolderTest {
 protected:
  Systems() {
    for (int seed = 1; seed <= 3; ++seed) {
      a_.push_back(write_system_run(folder_ / ("a" + std::to_string(seed)), seed, 4, 3).string());
      b_.push_back(write_system_run(folder_ / ("b" + std::to_string(seed)), seed, 12, 7).string());
    }
  }

  std::string refusal(const std::vector<std::string>& a, const std::vector<std::string>& b) const {
    return message_of<Error>(
        [&] { system_pair(read_system(a), read_system(b), EvaluatedOn::valid); });
  }
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
  EXPECT_THAT(text, AllOf(StartsWith("A is better on these graphs: +"),
                          HasSubstr("kendall_tau, valid split: 6 graphs of 4 families"),
                          HasSubstr("mean of members, 3 trainings of 2 members"),
                          HasSubstr("members together: A 0."),
                          HasSubstr("these graphs, if trained again (A - B)"),
                          HasSubstr("Welch's t test            p "),
                          HasSubstr("0 of 3 trainings collapsed, so the rate is at most 63 %"),
                          HasSubstr("if A and B differ far more on a few families"),
                          Not(HasSubstr("families without")), HasSubstr("the next family"),
                          HasSubstr("if nothing was known before, A leads on ")));
  const auto json = comparison_json(pair, found);
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
      AllOf(StartsWith("A scores 0.1000 higher than B on these graphs; trainings of"),
            HasSubstr("none: scores of all trainings are alike, so their spread is not known"),
            HasSubstr("none: differences of all families are alike"), Not(HasSubstr("is better")),
            Not(HasSubstr("t test")), Not(HasSubstr(" leads on ")), Not(HasSubstr("nan"))));
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
              Contains(HasSubstr("evaluate --draws 10")));
  for (RunRecord& run : runs) run.config.push_back({"data.reduce.drawn", "trained"});
  EXPECT_EQ(drawn_nodes_text(runs), "");
}

// Members are no other runs: what they say is named so, and has no p value.
TEST_F(Systems, SayWhereTheyCombineMembersByOtherRules) {
  PredictionsCase other = system_run(1, 4, 7);
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
      split.push_back(write_split_run(folder_ / ("s" + name), seed, 4, member).string());
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
  auto run = system_run(1, 4);
  run.header.runs[0].init_seed = 7;
  run.header.runs[0].parameter_hash = 70;
  std::string text = config_text(7, 0, 2);
  text.replace(text.find("order: 7"), 8, "order: 1");
  write_text(folder_ / "c" / "config.yaml", text);
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
  auto run = system_run(9, 4);
  auto& predictions = run.graphs[4];
  run.header.graphs[4].configs = run.header.graphs[4].rows = 2;
  predictions.configs = {0, 1};
  predictions.runtime = {10, 10};
  predictions.scores = {{1, 2}, {1, 2}};
  write_text(folder_ / "two" / "config.yaml", config_text(9, 0, 2));
  run.write(folder_ / "two" / "predictions.h5");
  const std::string input = (folder_ / "two").string();
  const SystemScores found = system_scores(read_system({&input, 1}), EvaluatedOn::valid);
  EXPECT_EQ(found.scores.graph_count(), 5);
  EXPECT_THAT(found.scores.left_out, Contains(HasSubstr("inception_v3_batch_128_train")));
  EXPECT_THAT(refusal(a_, {input}), HasSubstr("the data differ"));
}

// Files of an older version do not say what they began from.
TEST_F(Systems, RefuseRunsThatAreKnownToHaveBegunFromOtherWeights) {
  const auto file = [&](int seed, std::uint64_t init_hash) {
    auto run = system_run(seed, 4);
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
  EXPECT_THAT(notes(a_, b_), IsEmpty());
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

std::string refusal_of(const std::string& input) {
  return message_of<ConfigError>([&] { read_system({&input, 1}); });
}

class SweepIntervals : public FolderTest {
 protected:
  const std::string sweep_ = write_system_sweep(folder_ / "sweep").string();
};
using ReadSystem = SweepIntervals;

TEST_F(SweepIntervals, HaveTwoForEachVariant) {
  const ResultSet results = read_results({sweep_});
  EXPECT_THAT(
      sweep_interval_text(results),
      AllOf(HasSubstr("valid split: 1 significant difference between 2 variants on these 6 graphs "
                      "if trained again\n  Welch's t test decides, as in `tpudist compare`; "),
            HasSubstr("rate=0.1 - a:b: +0."), HasSubstr("rate=0.1, 95 % intervals"),
            HasSubstr("a:b, 95 % intervals"), HasSubstr("valid split: 6 graphs of 4 families"),
            HasSubstr("training graphs, out of fold: 2 graphs of 2 families"),
            HasSubstr("these graphs, if trained again"),
            HasSubstr("2 trainings without a collapse leave a collapse rate of up to 78 %"),
            HasSubstr("other families, if trained again")));
  const auto json = sweep_interval_json(results);
  ASSERT_EQ(json.size(), 2u);
  EXPECT_EQ(json[0].at("variant"), "rate=0.1");
  EXPECT_GT(json[0].at("valid").at("score"), json[1].at("valid").at("score"));
  EXPECT_EQ(json[0].at("valid").at("these_graphs").at("degrees"), 1);
  const auto pairs = sweep_pairs_json(results);
  ASSERT_EQ(pairs.size(), 2u);  // valid and out of fold
  EXPECT_EQ(pairs[0].at("pairs").size(), 1u);
  EXPECT_TRUE(pairs[0].at("shrunk").empty());  // of two variants
}

// A variant without two complete trainings is named and not passed over.
TEST_F(SweepIntervals, NameVariantsThatAreNotCompared) {
  ResultSet results = read_results({sweep_});
  results.sweep->labels.push_back("late");
  results.sweep->variant_experiment.push_back(0);
  if (!results.sweep->variant_group.empty()) results.sweep->variant_group.push_back(0);
  RunRecord late = results.runs.front();
  late.variant = "late";
  results.runs.push_back(late);
  EXPECT_THAT(sweep_interval_text(results),
              HasSubstr("not compared: late, which has no two complete trainings"));
}

// The same data have the same p in both commands.
TEST_F(SweepIntervals, DecideAsCompareDoes) {
  const auto sides = two_variants(sweep_);
  const SystemPair pair =
      system_pair(read_system({&sides[0], 1}), read_system({&sides[1], 1}), EvaluatedOn::valid);
  const auto pairs = sweep_pairs_json(read_results({sweep_}));
  EXPECT_NEAR(pairs[0].at("pairs")[0].at("p"),
              compare(pair.a.scores, pair.b.scores).these_graphs->p, 1e-12);
}

TEST_F(ReadSystem, NamesTheBaselineOfASweep) {
  SweepRecord record = SweepFiles(sweep_).record();
  record.baseline = true;
  write_record(SweepFiles(sweep_).record_file(), record);
  const auto sides = two_variants(sweep_);
  SystemPair pair =
      system_pair(read_system({&sides[0], 1}), read_system({&sides[1], 1}), EvaluatedOn::valid);
  EXPECT_TRUE(pair.a.baseline);
  EXPECT_FALSE(pair.b.baseline);
  EXPECT_THAT(comparison_text(pair, compare(pair.a.scores, pair.b.scores)),
              HasSubstr("rate=0.1 seed 2 (the baseline of the sweep)\n"));
  // Where the baseline is chosen, its fresh seeds are all that there is.
  record.stages.push_back({.name = "confirm", .first = 4, .count = 2, .confirms = true});
  write_record(SweepFiles(sweep_).record_file(), record);
  std::vector<SweepRun> fresh{record.runs[0], record.runs[1]};
  for (SweepRun& run : fresh) {
    run.index += 4;
    run.id[0] = '1';
  }
  write_stage_runs(SweepFiles(sweep_).stage_file(1), fresh);
  EXPECT_THAT(message_of<ConfigError>([&] { two_variants(sweep_); }),
              HasSubstr("the baseline, rate=0.1, was chosen, so there is no other variant"));
}

TEST_F(ReadSystem, ASweepOfTwoVariantsIsBothSides) {
  EXPECT_THAT(two_variants(sweep_), ElementsAre(sweep_ + ":0", sweep_ + ":1"));
  SweepRecord record = SweepFiles(sweep_).record();
  record.labels.push_back("third");
  record.variant_experiment.push_back(0);
  record.variant_group.push_back(0);
  record.runs[3].variant = 2;
  write_record(SweepFiles(sweep_).record_file(), record);
  EXPECT_THAT(message_of<ConfigError>([&] { two_variants(sweep_); }),
              HasSubstr("has runs of 3 variants; name two as " + sweep_ +
                        ":NUMBER: 0 (rate=0.1), 1 (a:b), 2 (third)"));
}

TEST_F(ReadSystem, OneVariantIsNotBothSides) {
  EXPECT_THAT(message_of<ConfigError>([&] { two_variants(sweep_ + ":1"); }),
              HasSubstr("name two as " + sweep_ + ":NUMBER: 0 (rate=0.1), 1 (a:b)"));
}

// Fifty times the same number is no estimate of each.
TEST_F(SweepIntervals, SayWhereTrainingsDoNotSeparateTheVariants) {
  ResultSet results = read_results({sweep_});
  results.sweep->labels = {"a", "b", "c"};
  results.sweep->variant_experiment = {0, 0, 0};
  results.sweep->variant_group = {0, 0, 0};
  std::vector<RunRecord> runs;
  for (const char* label : {"a", "b", "c"}) {
    for (std::size_t i = 0; i < 2; ++i) {
      runs.push_back(results.runs[i]);
      runs.back().variant = label;
    }
  }
  results.runs = runs;
  EXPECT_THAT(
      sweep_interval_text(results),
      AllOf(HasSubstr("between 3 variants on"), HasSubstr("for all 3 pairs at once decides; "),
            HasSubstr("best guess: these trainings do not separate the variants"),
            Not(HasSubstr("what training again would reach"))));
}

TEST_F(ReadSystem, TakesVariantsByNumberAndLabel) {
  for (const std::string variant : {":1", ":a:b"}) {
    const std::string input = sweep_ + variant;
    const std::vector<RunRecord> runs = read_system({&input, 1});
    ASSERT_EQ(runs.size(), 2u);
    EXPECT_EQ(runs[0].variant, "a:b");
  }
  EXPECT_THAT(refusal_of(sweep_), HasSubstr("name one as"));
  EXPECT_THAT(refusal_of(sweep_ + ":7"), HasSubstr("has no runs of a variant 7; name one as "));
  EXPECT_THAT(refusal_of(sweep_ + ":7"), HasSubstr(":NUMBER: 0 (rate=0.1), 1 (a:b)"));
}

}  // namespace
}  // namespace tpudist::test
