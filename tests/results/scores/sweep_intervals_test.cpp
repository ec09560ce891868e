#include "results/scores/comparison_text.hpp"

#include <gmock/gmock.h>

#include <nlohmann/json.hpp>

#include "core/error.hpp"
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

class SweepIntervals : public ::testing::Test {
 protected:
  const TempDir folder_;
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
  EXPECT_THAT(test::message_of<ConfigError>([&] { two_variants(sweep_); }),
              HasSubstr("the baseline, rate=0.1, was chosen, so there is no other variant"));
}

TEST_F(ReadSystem, ASweepOfTwoVariantsIsBothSides) {
  EXPECT_THAT(two_variants(sweep_), ::testing::ElementsAre(sweep_ + ":0", sweep_ + ":1"));
  SweepRecord record = SweepFiles(sweep_).record();
  record.labels.push_back("third");
  record.variant_experiment.push_back(0);
  record.variant_group.push_back(0);
  record.runs[3].variant = 2;
  write_record(SweepFiles(sweep_).record_file(), record);
  EXPECT_THAT(test::message_of<ConfigError>([&] { two_variants(sweep_); }),
              HasSubstr("has runs of 3 variants; name two as " + sweep_ +
                        ":NUMBER: 0 (rate=0.1), 1 (a:b), 2 (third)"));
}

TEST_F(ReadSystem, OneVariantIsNotBothSides) {
  EXPECT_THAT(test::message_of<ConfigError>([&] { two_variants(sweep_ + ":1"); }),
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
            ::testing::Not(HasSubstr("what training again would reach"))));
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
}  // namespace tpudist
