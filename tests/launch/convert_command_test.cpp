// convert, verify and inspect as a user calls them.

#include <algorithm>
#include <fstream>
#include <nlohmann/json.hpp>

#include "core/error.hpp"
#include "core/log.hpp"
#include "launch/commands/commands.hpp"
#include "launch/program/command_line.hpp"
#include "tests/data/npz/npz_fixture.hpp"
#include "tests/support/matchers.hpp"

namespace tpudist::test {
namespace {

class ConvertCommandTest : public FolderTest {
 protected:
  // Runs `tpudist ARGUMENTS`, which must end with this exit code, and returns what it prints.
  std::string run(const std::vector<std::string>& arguments, int expected_code = 0) {
    CommandLine line("tpudist", "A program");
    ::testing::internal::CaptureStdout();
    ::testing::internal::CaptureStderr();
    set_up_logging(0, 1);
    const int code = run_command_line(
        line,
        [&] {
          add_convert_command(line.program());
          add_verify_command(line.program());
          add_inspect_command(line.program());
          line.parse(arguments);
        },
        [this](const Failure& failure) {
          message = failure.message;
          return failure.exit_code;
        });
    errors = ::testing::internal::GetCapturedStderr();
    EXPECT_EQ(code, expected_code) << message;
    return ::testing::internal::GetCapturedStdout();
  }

  void add(const std::string& file, const NpzFixture& fixture) { fixture.write(folder_ / file); }
  const std::string npz_ = folder_ / "npz", shards_ = folder_ / "shards";
  std::string message, errors;
};

TEST_F(ConvertCommandTest, ConvertsVerifiesAndInspects) {
  add("npz/layout/xla/random/train/a.npz", NpzFixture::layout());
  add("npz/tile/xla/train/b.npz", NpzFixture::make_tile());
  EXPECT_THAT(run({"convert", npz_, shards_, "--jobs", "2"}),
              HasSubstr("layout:xla:random          1 graphs (1 converted, 0 kept, 0 bad)"));
  EXPECT_THAT(run({"verify", shards_, "--npz", npz_}),
              HasSubstr("6 configurations sound, 0 problems"));
  EXPECT_THAT(run({"inspect", shards_}),
              HasSubstr("train  1 graph, 6 configurations (4 distinct)"));
  const auto json =
      nlohmann::json::parse(run({"inspect", shards_, "--collection", "tile:xla", "--json"}));
  EXPECT_EQ(json.at("tile:xla").at(0).at("distinct_configs"), 3);
  EXPECT_EQ(json.size(), 1u);
  run({"convert", shards_, folder_ / "out"}, 2);
  EXPECT_THAT(message, HasSubstr("/shards: these are shards already: give the folder to "));
  run({"convert", npz_, shards_ + "/layout"}, 2);
  EXPECT_THAT(message, HasSubstr("/shards/layout lies within the shards in "));
  run({"convert", npz_, ""}, 2);
  EXPECT_EQ(message, "the folder of the shards has no name");
  run({"inspect", shards_, "--collection", "xla"}, 2);
  EXPECT_THAT(message,
              HasSubstr("did you mean tile:xla or layout:xla:default or layout:xla:random?"));
}

TEST_F(ConvertCommandTest, InspectSaysWhereThereAreNoRunTimes) {
  NpzFixture hidden = NpzFixture::layout();
  std::ranges::fill(hidden.runtime, 0);
  add("npz/layout/xla/random/test/a.npz", hidden);
  run({"convert", npz_, shards_});
  EXPECT_THAT(run({"inspect", shards_}), ContainsRegex("test   a  .*  none  "));
  const auto json = nlohmann::json::parse(run({"inspect", shards_, "--json"}));
  EXPECT_TRUE(json.at("layout:xla:random").at(0).at("runtime_max").is_null());
}

TEST_F(ConvertCommandTest, ABadFileIsNamedAndEndsWithExitCode3) {
  add("npz/tile/xla/train/a.npz", NpzFixture::make_tile());
  NpzFixture bad = NpzFixture::make_tile();
  bad.edge_index[1] = 9;
  add("npz/tile/xla/valid/b.npz", bad);
  EXPECT_THAT(run({"convert", npz_, shards_}, 3), HasSubstr("not published: 1 bad"));
  EXPECT_THAT(errors, HasSubstr("b.npz: edge_index[0, 1] = 9 is not a node (the graph has 5)"));
  EXPECT_THAT(message, HasSubstr("1 bad NPZ file, named above; not published: tile:xla (mend the "
                                 "files, or leave them out (--on-error skip))"));
  EXPECT_THAT(run({"convert", npz_, shards_, "--on-error", "skip"}, 3), HasSubstr("1 graphs"));
  EXPECT_THAT(run({"verify", shards_}), HasSubstr("0 problems"));
  NpzFixture worse = NpzFixture::make_tile();
  worse.edge_index[1] = 9;
  add("npz/tile/xla/train/a.npz", worse);  // which was converted
  run({"convert", npz_, shards_, "--on-error", "skip"}, 3);
  EXPECT_THAT(message, HasSubstr("let the graphs go that they had before (--replace)"));
}

TEST_F(ConvertCommandTest, VerifyEndsWithExitCode3WhereSomethingIsWrong) {
  add("npz/tile/xla/train/a.npz", NpzFixture::make_tile());
  run({"convert", npz_, shards_});
  std::filesystem::remove(shards_ + "/tile/xla/train/shard-00000.h5");
  EXPECT_THAT(run({"verify", shards_}, 3), HasSubstr("1 problems"));
  EXPECT_THAT(errors, HasSubstr("shard-00000.h5 is missing"));
}

TEST_F(ConvertCommandTest, OwnCollectionsAreConvertedVerifiedAndInspectedLikeTpuGraphs) {
  add("npz/layout/my-models/v1/train/a.npz", NpzFixture::layout());
  add("npz/tile/Own/valid/b.npz", NpzFixture::make_tile());
  add("npz/layout/xla/random/test/c.npz", NpzFixture::layout());
  add("npz/layout/v1.2/x/train/d.npz", NpzFixture::layout());
  const std::string converted = run({"convert", npz_, shards_});
  EXPECT_THAT(converted, ContainsRegex("layout:xla:random.*\nlayout:my-models:v1.*\n"
                                       "tile:Own"));
  EXPECT_THAT(errors, HasSubstr("layout/v1.2/x is passed over"));
  EXPECT_THAT(errors, Not(HasSubstr("did you mean")));
  EXPECT_TRUE(std::filesystem::exists(shards_ + "/layout/my-models/v1/manifest.json"));
  EXPECT_THAT(run({"verify", shards_, "--npz", npz_}), HasSubstr("tile:Own"));
  const auto json = nlohmann::json::parse(
      run({"inspect", shards_, "--collection", "layout:my-models:v1", "--json"}));
  EXPECT_EQ(json.at("layout:my-models:v1").at(0).at("name"), "a");
  EXPECT_EQ(nlohmann::json::parse(run({"inspect", shards_, "--json"})).size(), 3u);
}

// Also where a collection has nothing else.
TEST_F(ConvertCommandTest, WhatIsNotReadIsNamedWithTheNearestNameThatIs) {
  add("npz/layout/xla/random/train/a.npz", NpzFixture::layout());
  add("npz/layout/xla/random/Validation/b.npz", NpzFixture::layout());
  add("npz/layout/xla/random/tset/b.npz", NpzFixture::layout());
  add("npz/tile/train/k.npz", NpzFixture::make_tile());
  for (const char* name : {"schema.yml", "train/._a.npz", "train/b.NPZ", "train/.DS_Store"})
    std::ofstream(npz_ + "/layout/xla/random/" + name) << "x";
  for (const auto& command : {std::vector<std::string>{"convert", npz_, shards_},
                              std::vector<std::string>{"verify", shards_, "--npz", npz_}}) {
    run(command);
    const std::string rule = " passed over: graphs lie in train, valid and test";
    EXPECT_THAT(errors, HasSubstr("random/Validation is" + rule + "; did you mean valid?"));
    EXPECT_THAT(errors, HasSubstr("random/tset is" + rule + "; did you mean test?"));
    EXPECT_THAT(errors, HasSubstr("random/schema.yml is" + rule + "; did you mean schema.yaml?"));
    EXPECT_THAT(errors, HasSubstr("tile/train/k.npz is" + rule + "\n"));
    EXPECT_THAT(errors, HasSubstr("train/._a.npz and 1 more are passed over: graphs are NAME.npz"));
  }
}

TEST_F(ConvertCommandTest, WhatIsNotReadIsNamedOfTheChosenCollectionsOnly) {
  add("npz/layout/xla/random/train/a.npz", NpzFixture::layout());
  add("npz/layout/xla/random/latest/a.npz", NpzFixture::layout());
  add("npz/tile/xla/tset/k.npz", NpzFixture::make_tile());
  add("npz/layout/v1.2/x/train/d.npz", NpzFixture::layout());
  run({"convert", npz_, shards_, "--collections", "layout:xla:random"});
  EXPECT_THAT(errors, HasSubstr("latest is passed over: graphs lie in train, valid and test\n"));
  EXPECT_THAT(errors, Not(HasSubstr("tset")));
  EXPECT_THAT(errors, Not(HasSubstr("v1.2")));
}

TEST_F(ConvertCommandTest, EqualContentInTwoSplitsIsNamed) {
  add("npz/layout/xla/random/train/a.npz", NpzFixture::layout());
  add("npz/layout/xla/random/valid/b.npz", NpzFixture::layout());
  for (int time = 0; time < 2; ++time) {  // also of shards that are kept
    run({"convert", npz_, shards_});
    EXPECT_THAT(errors, HasSubstr("train/a.npz and layout/xla/random/valid/b.npz have the same"));
  }
}

TEST_F(ConvertCommandTest, SuspectsAreShownWithTheirEvidenceAndWhatLeavesThemOut) {
  NpzFixture frozen = NpzFixture::make_tile();
  frozen.c = 200;
  frozen.features.clear();
  for (int i = 0; i < 200 * 24; ++i) frozen.features.push_back(static_cast<float>(i));
  frozen.runtime.assign(200, 0);
  for (int i = 0; i < 200; ++i) frozen.runtime[i] = 1000 + i;
  for (int i = 50; i < 62; ++i) frozen.runtime[i] = 7777;
  frozen.normalizers.assign(200, 50);
  add("npz/tile/xla/train/stuck.npz", frozen);
  add("npz/tile/xla/valid/b.npz", NpzFixture::make_tile());
  run({"convert", npz_, shards_});
  const std::string text = run({"inspect", shards_, "--suspects"});
  EXPECT_THAT(text, HasSubstr("tile:xla: 2 graphs, 1 suspect"));
  EXPECT_THAT(text, HasSubstr("train stuck (200 measurements)\n  frozen: measurements 50 to 61"));
  EXPECT_THAT(text, HasSubstr("to leave them out: 'data.exclude.train=[\"stuck\"]'\n"));
  const auto json = nlohmann::json::parse(run({"inspect", shards_, "--suspects", "--json"}));
  EXPECT_EQ(json.at("tile:xla").at("order"), "searched");
  EXPECT_THAT(text, Not(HasSubstr("entropy_filter"))) << "of layouts only";
  EXPECT_EQ(json.at("tile:xla").at("graphs").at(0).at("suspect"), true);
  EXPECT_EQ(json.at("tile:xla").at("graphs").at(1).at("suspect"), false);
  run({"inspect", shards_, "--order", "random"}, 2);  // without --suspects
}

TEST_F(ConvertCommandTest, ACollectionThatIsNotThereIsAnErrorThatNamesTheNearest) {
  add("npz/layout/xla/random/train/a.npz", NpzFixture::layout());
  run({"convert", npz_, shards_, "--collections", "layout:xla:rndom"}, 2);
  EXPECT_THAT(message, HasSubstr("did you mean layout:xla:random,"));
  run({"convert", npz_, shards_});
  run({"inspect", shards_, "--collection", "layout:xla:randm"}, 2);
  EXPECT_THAT(message, HasSubstr("did you mean layout:xla:random,"));
  run({"inspect", shards_, "--collection", "tile:k"}, 2);
  EXPECT_THAT(message, HasSubstr("holds no shards of tile:k (there are layout:xla:random)"));
}

TEST_F(ConvertCommandTest, WrongUsage) {
  run({"convert", npz_, shards_}, 2);  // there is no such folder
  std::filesystem::create_directories(npz_);
  run({"convert", npz_, shards_}, 2);
  EXPECT_THAT(message, HasSubstr("holds no NPZ files"));
  run({"convert", npz_, shards_, "--collections", "layot:xla:random"}, 2);
  EXPECT_THAT(message, HasSubstr("did you mean layout:xla:random?"));
  run({"convert", npz_, shards_, "--on-error", "ignore"}, 2);
}

}  // namespace
}  // namespace tpudist::test
