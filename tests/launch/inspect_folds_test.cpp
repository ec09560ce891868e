// `tpudist inspect --folds` as a user calls it.

#include <gmock/gmock.h>

#include <nlohmann/json.hpp>
#include <string>

#include "core/file_system.hpp"
#include "tests/launch/run_program.hpp"
#include "tests/train/tiny_data.hpp"

namespace tpudist {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::Outcome;
using testing::TempDir;

Outcome inspect(const std::string& arguments) {
  return testing::run_program("inspect " + testing::tiny_shards().string() + " " + arguments +
                              " 2>&1");
}

TEST(InspectFolds, ShowsEachSourceOnce) {
  const Outcome outcome = inspect("--folds 2 --json");
  ASSERT_EQ(outcome.exit_code, 0) << outcome.output;
  const auto json = nlohmann::json::parse(outcome.output);
  std::vector<std::string> first;
  for (const auto& table : json) first.push_back(table.at("collections").at(0));
  EXPECT_THAT(first, ElementsAre("tile:xla", "layout:xla:default", "layout:nlp:default"));
  EXPECT_THAT(inspect("--folds 2 --collection layout:xla:random").output,
              HasSubstr("2 folds of the training graphs of layout:xla:default and "
                        "layout:xla:random (seed 1)"));
}

TEST(InspectFolds, WritesAFileThatItShowsAgain) {
  const TempDir folder;
  const std::string file = (folder / "folds.yaml").string();
  const Outcome written =
      inspect("--collection tile:xla --folds 3 --seed 4 --json --write-folds " + file);
  ASSERT_EQ(written.exit_code, 0) << written.output;
  const Outcome shown = inspect("--collection tile:xla --json --fold-file " + file);
  ASSERT_EQ(shown.exit_code, 0) << shown.output;
  EXPECT_EQ(nlohmann::json::parse(shown.output).at(0).at("graphs"),
            nlohmann::json::parse(written.output).at(0).at("graphs"));
}

TEST(InspectFolds, SaysWhatCannotBe) {
  const TempDir folder;
  const std::string file = (folder / "folds.yaml").string();
  const Outcome many = inspect("--collection layout:xla:random --folds 100");
  EXPECT_EQ(many.exit_code, 2);
  EXPECT_THAT(many.output, HasSubstr("100 folds need as many model families"));
  EXPECT_THAT(inspect("--folds 2 --write-folds " + file).output,
              HasSubstr("name one with --collection"));
  EXPECT_THAT(inspect("--write-folds " + file).output, HasSubstr("Needs --folds or --fold-file"));
  write_file_atomically(file, "families: {nobody: 0}");
  EXPECT_THAT(inspect("--collection layout:xla:random --fold-file " + file).output,
              HasSubstr("no line covers"));
}

}  // namespace
}  // namespace tpudist
