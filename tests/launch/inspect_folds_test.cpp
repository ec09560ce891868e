// `tpudist inspect --folds` as a user calls it.

#include <fmt/format.h>

#include <map>
#include <nlohmann/json.hpp>
#include <string>

#include "core/file_system.hpp"
#include "tests/launch/run_program.hpp"
#include "tests/train/tiny_data.hpp"

namespace tpudist::test {
namespace {

Outcome inspect(const std::string& arguments) {
  return test::run_program("inspect " + test::tiny_shards().string() + " " + arguments + " 2>&1");
}

TEST(InspectFolds, ShowsEachSourceOnce) {
  const auto json = nlohmann::json::parse(output_of(inspect("--folds 2 --json")));
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
  const std::string written =
      output_of(inspect("--collection tile:xla --folds 3 --seed 4 --json --write-folds " + file));
  EXPECT_EQ(
      nlohmann::json::parse(output_of(inspect("--collection tile:xla --json --fold-file " + file)))
          .at(0)
          .at("graphs"),
      nlohmann::json::parse(written).at(0).at("graphs"));
}

TEST(InspectFolds, SaysWhatCannotBe) {
  const TempDir folder;
  const std::string file = (folder / "folds.yaml").string();
  EXPECT_THAT(output_of(inspect("--collection layout:xla:random --folds 100"), 2),
              HasSubstr("100 folds need as many model families"));
  EXPECT_THAT(inspect("--folds 2 --write-folds " + file).output,
              HasSubstr("name one with --collection"));
  EXPECT_THAT(inspect("--write-folds " + file).output, HasSubstr("Needs --folds or --fold-file"));
  write_file_atomically(file, "families: {nobody: 0}");
  EXPECT_THAT(inspect("--collection layout:xla:random --fold-file " + file).output,
              HasSubstr("no line covers"));
}

TEST(InspectFolds, WarnsOfAFileThatSplitsAFamily) {
  const TempDir folder;
  const std::string file = (folder / "folds.yaml").string();
  const std::string npz = (folder / "npz").string(), shards = (folder / "shards").string();
  ASSERT_EQ(test::run_program("synth " + npz +
                              " --preset tiny --graphs 20,1,1 --configs 4 "
                              "--collections tile:xla && " +
                              test::program().string() + " convert " + npz + " " + shards)
                .exit_code,
            0);
  const std::string inspect_them = "inspect " + shards + " --collection tile:xla ";
  const Outcome written = test::run_program(inspect_them + "--folds 2 --json 2>/dev/null");
  std::string text = "graphs:\n", family;
  std::map<std::string, int> seen;
  const auto folds = nlohmann::json::parse(written.output);
  for (const auto& graph : folds.at(0).at("graphs")) {
    const std::string own = graph.at("family");
    if (++seen[own] == 2 && family.empty()) family = own;
    text += fmt::format("  '{}': {}\n", graph.at("name").get<std::string>(),
                        own == family && seen[own] == 2 ? 1 : 0);
  }
  ASSERT_NE(family, "");
  write_file_atomically(file, text);
  EXPECT_THAT(test::run_program(inspect_them + "--fold-file " + file + " 2>&1").output,
              HasSubstr(file + " splits model families over several folds: " + family + ";"));
}

}  // namespace
}  // namespace tpudist::test
