#include "results/scores/sweep_intervals.hpp"

#include <gmock/gmock.h>

#include <nlohmann/json.hpp>

#include "core/error.hpp"
#include "results/scores/comparison_text.hpp"
#include "results/scores/system_scores.hpp"
#include "tests/results/scores/system_case.hpp"
#include "tests/support/thrown.hpp"

namespace tpudist {
namespace {

using test::TempDir;
using test::write_system_sweep;
using ::testing::AllOf;
using ::testing::HasSubstr;

std::string refusal_of(const std::string& input) {
  return test::message_of<ConfigError>([&] { read_system({&input, 1}); });
}

TEST(SweepIntervals, HaveTwoForEachVariant) {
  const TempDir folder;
  const ResultSet results = read_results({write_system_sweep(folder / "sweep")});
  EXPECT_THAT(
      sweep_interval_text(results),
      AllOf(HasSubstr("valid split: 1 significant difference between 2 variants on these 6 graphs "
                      "if trained again\n  Welch's t test decides, as in `tpudist compare`; "),
            HasSubstr("rate=0.1 - a:b: +0."), HasSubstr("rate=0.1, 95 % intervals"),
            HasSubstr("a:b, 95 % intervals"), HasSubstr("valid split: 6 graphs of 4 families"),
            HasSubstr("training graphs, out of fold: 2 graphs of 2 families"),
            HasSubstr("these graphs, if trained again"),
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

TEST(SweepIntervals, SayWhatFewTrainingsCannotSee) {
  const TempDir folder;
  EXPECT_THAT(sweep_interval_text(read_results({write_system_sweep(folder / "sweep")})),
              HasSubstr("2 trainings without a collapse leave a collapse rate of up to 78 %"));
}

// A variant without two complete trainings is named and not passed over.
TEST(SweepIntervals, NameVariantsThatAreNotCompared) {
  const TempDir folder;
  ResultSet results = read_results({write_system_sweep(folder / "sweep")});
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
TEST(SweepIntervals, DecideAsCompareDoes) {
  const TempDir folder;
  const std::string sweep = write_system_sweep(folder / "sweep").string();
  const auto sides = two_variants(sweep);
  const SystemPair pair =
      system_pair(read_system({&sides[0], 1}), read_system({&sides[1], 1}), EvaluatedOn::valid);
  const auto pairs = sweep_pairs_json(read_results({sweep}));
  EXPECT_NEAR(pairs[0].at("pairs")[0].at("p"),
              compare(pair.a.scores, pair.b.scores).these_graphs->p, 1e-12);
}

TEST(ReadSystem, NamesTheBaselineOfASweep) {
  const TempDir folder;
  const std::string sweep = write_system_sweep(folder / "sweep").string();
  SweepRecord record = SweepFiles(sweep).record();
  record.baseline = true;
  write_record(SweepFiles(sweep).record_file(), record);
  const auto sides = two_variants(sweep);
  SystemPair pair =
      system_pair(read_system({&sides[0], 1}), read_system({&sides[1], 1}), EvaluatedOn::valid);
  EXPECT_TRUE(pair.a.baseline);
  EXPECT_FALSE(pair.b.baseline);
  EXPECT_THAT(comparison_text(pair, compare(pair.a.scores, pair.b.scores)),
              HasSubstr("rate=0.1 seed 2 (the baseline of the sweep)\n"));
  // Where the baseline is chosen, its fresh seeds are all that there is.
  record.stages.push_back({.name = "confirm", .first = 4, .count = 2, .confirms = true});
  write_record(SweepFiles(sweep).record_file(), record);
  std::vector<SweepRun> fresh{record.runs[0], record.runs[1]};
  for (SweepRun& run : fresh) {
    run.index += 4;
    run.id[0] = '1';
  }
  write_stage_runs(SweepFiles(sweep).stage_file(1), fresh);
  EXPECT_THAT(test::message_of<ConfigError>([&] { two_variants(sweep); }),
              HasSubstr("the baseline, rate=0.1, was chosen, so there is no other variant"));
}

TEST(ReadSystem, ASweepOfTwoVariantsIsBothSides) {
  const TempDir folder;
  const std::string sweep = write_system_sweep(folder / "sweep").string();
  EXPECT_THAT(two_variants(sweep), ::testing::ElementsAre(sweep + ":0", sweep + ":1"));
  SweepRecord record = SweepFiles(sweep).record();
  record.labels.push_back("third");
  record.variant_experiment.push_back(0);
  record.variant_group.push_back(0);
  record.runs[3].variant = 2;
  write_record(SweepFiles(sweep).record_file(), record);
  EXPECT_THAT(test::message_of<ConfigError>([&] { two_variants(sweep); }),
              HasSubstr("has runs of 3 variants; name two as " + sweep +
                        ":NUMBER: 0 (rate=0.1), 1 (a:b), 2 (third)"));
}

TEST(ReadSystem, OneVariantIsNotBothSides) {
  const TempDir folder;
  const std::string sweep = write_system_sweep(folder / "sweep").string();
  EXPECT_THAT(test::message_of<ConfigError>([&] { two_variants(sweep + ":1"); }),
              HasSubstr("name two as " + sweep + ":NUMBER: 0 (rate=0.1), 1 (a:b)"));
}

// Fifty times the same number is no estimate of each.
TEST(SweepIntervals, SayWhereTrainingsDoNotSeparateTheVariants) {
  const TempDir folder;
  ResultSet results = read_results({write_system_sweep(folder / "sweep")});
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
            ::testing::Not(HasSubstr("what training again would reach"))));
}

TEST(ReadSystem, TakesVariantsByNumberAndLabel) {
  const TempDir folder;
  const std::string sweep = write_system_sweep(folder / "sweep").string();
  for (const std::string variant : {":1", ":a:b"}) {
    const std::string input = sweep + variant;
    const std::vector<RunRecord> runs = read_system({&input, 1});
    ASSERT_EQ(runs.size(), 2u);
    EXPECT_EQ(runs[0].variant, "a:b");
  }
  EXPECT_THAT(refusal_of(sweep), HasSubstr("name one as"));
  EXPECT_THAT(refusal_of(sweep + ":7"), HasSubstr("has no runs of a variant 7; name one as "));
  EXPECT_THAT(refusal_of(sweep + ":7"), HasSubstr(":NUMBER: 0 (rate=0.1), 1 (a:b)"));
}

}  // namespace
}  // namespace tpudist
