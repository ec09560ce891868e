#include "scores/submission.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <cmath>

#include "core/error.hpp"
#include "tests/support/temp_dir.hpp"
#include "tests/support/thrown.hpp"

namespace tpudist {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using Values = std::vector<double>;

const Collection kTile = Collection::parse("tile:xla");
const Collection kLayout = Collection::parse("layout:xla:default");

// The message of the DataError that parsing throws.
std::string parse_error(std::string_view csv) {
  return test::message_of<DataError>([&] { Submission::parse(csv, "some.csv"); });
}

TEST(Submission, ListsAllOfALayoutGraphAndFiveOfATileGraph) {
  Submission submission;
  submission.add(kTile, "a1b2", Values{6, 5, 4, 3, 2, 1, 7});
  submission.add(kTile, "small", Values{2, 1});
  submission.add(kLayout, "bert.4x4", Values{3, -1, 2, 0.5, 10, 0});
  EXPECT_EQ(submission.to_csv(),
            "ID,TopConfigs\n"
            "tile:xla:a1b2,5;4;3;2;1\n"
            "tile:xla:small,1;0\n"
            "layout:xla:default:bert.4x4,1;5;3;2;0;4\n");
}

TEST(Submission, RanksEqualScoresByNumber) {
  EXPECT_THAT(ranking_of(Values{1, 0, 1, 0, -0.0}), ElementsAre(1, 3, 4, 0, 2));
}

TEST(Submission, RefusesWhatCannotBeRanked) {
  Submission submission;
  submission.add(kLayout, "a", Values{1, 2});
  EXPECT_THROW(submission.add(kLayout, "a", Values{1, 2}), DataError);
  EXPECT_THROW(submission.add(kLayout, "b", Values{1, std::nan("")}), DataError);
  EXPECT_THROW(submission.add(kLayout, "b", {}), DataError);
  EXPECT_THROW(submission.add(kLayout, "", Values{1}), DataError);
  EXPECT_THROW(submission.add(kLayout, "b,c", Values{1}), DataError);
  EXPECT_EQ(submission.rows().size(), 1u);
}

TEST(Submission, IsWrittenAndReadBack) {
  const test::TempDir folder;
  Submission submission;
  submission.add(kTile, "kernel", Values{2, 1, 3});
  submission.add(kLayout, "bert", Values{1, 0});
  submission.write(folder / "submission.csv");
  const Submission read = Submission::read(folder / "submission.csv");
  EXPECT_EQ(read.to_csv(), submission.to_csv());
  ASSERT_NE(read.find("tile:xla:kernel"), nullptr);
  EXPECT_THAT(read.find("tile:xla:kernel")->configs, ElementsAre(1, 0, 2));
  EXPECT_EQ(read.find("tile:xla:other"), nullptr);
  EXPECT_THROW(Submission::read(folder / "missing.csv"), IoError);
}

TEST(Submission, OwnCollectionsAreWrittenAndReadLikeTpuGraphs) {
  Submission submission;
  submission.add(Collection::parse("layout:my-models:v1"), "net:4x4", Values{3, 1, 2});
  submission.add(Collection::parse("tile:Own"), "k", Values{6, 5, 4, 3, 2, 1});
  EXPECT_EQ(submission.to_csv(),
            "ID,TopConfigs\nlayout:my-models:v1:net:4x4,1;2;0\ntile:Own:k,5;4;3;2;1\n");
  EXPECT_EQ(Submission::parse(submission.to_csv(), "x").to_csv(), submission.to_csv());
}

TEST(Submission, ReadsWindowsLineEndsAndAMissingLastOne) {
  const auto read = Submission::parse("ID,TopConfigs\r\ntile:xla:a,1;0\r\ntile:xla:b,0", "x");
  EXPECT_EQ(read.to_csv(), "ID,TopConfigs\ntile:xla:a,1;0\ntile:xla:b,0\n");
}

TEST(Submission, NamesFileAndLineOfAMistake) {
  const std::string head = "ID,TopConfigs\n";
  EXPECT_THAT(parse_error(""), HasSubstr("some.csv: empty"));
  EXPECT_THAT(parse_error("id,configs\n"), HasSubstr("some.csv:1: expected the header"));
  EXPECT_THAT(parse_error(head + "tile:xla:a\n"), HasSubstr("some.csv:2: expected two columns"));
  EXPECT_THAT(parse_error(head + "tile:xla:a,0,1\n"), HasSubstr("expected two columns"));
  EXPECT_THAT(parse_error(head + "\n"), HasSubstr("expected two columns"));
  EXPECT_THAT(parse_error(head + "tile:xla:a,0\ntile:gpu,0\n"), HasSubstr("some.csv:3: the ID"));
  EXPECT_THAT(parse_error(head + "tile:xla:,0\n"), HasSubstr("the ID"));
  EXPECT_THAT(parse_error(head + "tile:xla:a,0;x\n"), HasSubstr("entry 1 begins with 'x'"));
  EXPECT_THAT(parse_error(head + "tile:xla:a,0;\n"), HasSubstr("entry 1"));
  EXPECT_THAT(parse_error(head + "tile:xla:a,\n"), HasSubstr("entry 0"));
  EXPECT_THAT(parse_error(head + "tile:xla:a,-1\n"), HasSubstr("entry 0"));
  EXPECT_THAT(parse_error(head + "tile:xla:a,99999999999\n"), HasSubstr("entry 0"));
  EXPECT_THAT(parse_error(head + "tile:xla:a,1;0;1\n"),
              HasSubstr("configuration 1 is listed twice"));
  EXPECT_THAT(parse_error(head + "tile:xla:a,0\ntile:xla:a,0\n"),
              HasSubstr("some.csv:3: a second row"));
}

TEST(Submission, IsMergedFromSeveralRuns) {
  Submission tile, layout;
  tile.add(kTile, "a", Values{1, 0});
  tile.add(kTile, "b", Values{0, 1});
  layout.add(kLayout, "a", Values{1, 0});
  layout.add(kTile, "a", Values{1, 0});  // the same row again
  tile.merge(layout);
  EXPECT_EQ(tile.to_csv(),
            "ID,TopConfigs\ntile:xla:a,1;0\ntile:xla:b,0;1\nlayout:xla:default:a,1;0\n");
}

TEST(Submission, RefusesToMergeRowsThatDisagree) {
  Submission one, other;
  one.add(kTile, "a", Values{1, 0});
  other.add(kTile, "new", Values{1, 0});
  other.add(kTile, "a", Values{0, 1});
  EXPECT_THROW(one.merge(other), ConfigError);
  EXPECT_EQ(one.rows().size(), 1u);  // nothing was taken
}

RC_GTEST_PROP(SubmissionProperty, AnyBytesAreReadOrRefused, (const std::string& bytes)) {
  try {
    const Submission read = Submission::parse("ID,TopConfigs\ntile:xla:" + bytes, "x");
    RC_ASSERT(Submission::parse(read.to_csv(), "x").to_csv() == read.to_csv());
  } catch (const DataError&) {
  }
}

RC_GTEST_PROP(SubmissionProperty, RankingIsASortedPermutation, (const std::vector<int>& values)) {
  const Values scores(values.begin(), values.end());
  const auto ranking = ranking_of(scores);
  RC_ASSERT(ranking.size() == scores.size());
  for (std::size_t i = 1; i < ranking.size(); ++i) {
    const double a = scores[ranking[i - 1]], b = scores[ranking[i]];
    RC_ASSERT(a < b || (a == b && ranking[i - 1] < ranking[i]));
  }
}

}  // namespace
}  // namespace tpudist
