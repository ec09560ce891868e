#include "data/loading/module_file.hpp"

#include <gmock/gmock.h>

#include <cmath>
#include <fstream>
#include <limits>

#include "tests/data/hlo/hlo_protos.hpp"
#include "tests/data/loading/dataset_case.hpp"
#include "tests/support/converted.hpp"

namespace tpudist::test {
namespace {

using ::testing::Each;
using ::testing::HasSubstr;

const Collection kOwnLayout = Collection::parse("layout:own:x");
const Collection kOwnTile = Collection::parse("tile:own");

class ModuleFileTest : public ::testing::Test {
 protected:
  const Collection& kind(const NpzFixture& f) const { return f.tile ? kOwnTile : kOwnLayout; }

  std::filesystem::path write(const NpzFixture& f) const {
    const auto path = folder_ / "npz" / kind(f).folder() / "valid" / "net.npz";
    f.write(path);
    return path;
  }

  Dataset from_shards(const NpzFixture& f) {
    DatasetOptions of_shards;
    of_shards.shards = convert_npz(folder_.path());
    of_shards.collection = kind(f);
    of_shards.split = "valid";
    return Dataset::open(of_shards, pool_);
  }

  // All that scores depend on is the same as in a shard of the same file.
  void expect_like_shards(const NpzFixture& f) {
    const Module module = read_module(write(f), kind(f));
    EXPECT_EQ(module.dataset.graph(0).name, "net");
    EXPECT_TRUE(module.has_times);
    expect_equal_data(module.dataset, from_shards(f));
  }

  std::string error_of(const NpzFixture& f) {
    return message_of<DataError>([&] { read_module(write(f), kind(f)); });
  }

  const TempDir folder_;
  ThreadPool pool_{1};
};

TEST_F(ModuleFileTest, IsWhatAShardOfTheFileHolds) {
  expect_like_shards(NpzFixture::layout());
  expect_like_shards(NpzFixture::make_tile());
}

TEST_F(ModuleFileTest, IsWhatAShardHoldsInWiderCodesAndInSeveralBlocks) {
  expect_like_shards(many_configs(20'000, 300));
}

TEST_F(ModuleFileTest, IsWhatAShardHoldsWhereConfigurationsAreNotCoded) {
  NpzFixture f = many_configs(2'000, 1'000'000);
  expect_like_shards(f);
  EXPECT_FALSE(read_module(write(f), kOwnLayout).dataset.coded(0));
  f.features[7] = 0.5f;  // no integer type holds it
  expect_like_shards(f);
}

TEST_F(ModuleFileTest, NeedsNoRunTimes) {
  for (NpzFixture f : {NpzFixture::layout(), NpzFixture::make_tile()}) {
    f.without = "config_runtime";
    const Module missing = read_module(write(f), kind(f));
    EXPECT_FALSE(missing.has_times);
    EXPECT_EQ(missing.dataset.rows(0), f.c);
    EXPECT_THAT(missing.dataset.run_times(0).runtime, Each(0));
    f.without = "";
    std::ranges::fill(f.runtime, 0);
    EXPECT_FALSE(read_module(write(f), kind(f)).has_times);
    std::ranges::fill(f.normalizers, 0);
    EXPECT_FALSE(read_module(write(f), kind(f)).has_times);
  }
}

TEST_F(ModuleFileTest, KnowsTheDefaultConfiguration) {
  EXPECT_EQ(read_module(write(NpzFixture::layout()), kOwnLayout).standard, 0);
  EXPECT_TRUE(holds_npz(write(NpzFixture::layout())));
  // The run that failed is left out, and the default is the second of the others.
  const std::string program = module("m", {computation("main", 1, 2,
                                                       {{"p", "parameter", 1, {}, {}, {4, 6}, {}},
                                                        {"r", "reshape", 2, {1}, {}, {24}, {}}})});
  const std::vector<RunSketch> runs{{60, false, true, {{{0}, {0, 1}}}},
                                    {50, false, false, {{{0}, {1, 0}}}},
                                    {70, true, false, {{{0}, {0, 1}}}}};
  std::ofstream(folder_ / "m.pb", std::ios::binary) << tuned(program, runs, {1}, false);
  EXPECT_FALSE(holds_npz(folder_ / "m.pb"));
  const Module measured = read_module(folder_ / "m.pb", kOwnLayout);
  ASSERT_EQ(measured.standard, 1);
  EXPECT_EQ(measured.number_of(1), 2);
  const auto made = [&](const std::string& configs) {
    return read_module(folder_ / "m.pb", kOwnLayout, {}, {}, {.configs = configs}).standard;
  };
  EXPECT_EQ(made("neighbours"), 0);
  std::ofstream(folder_ / "own.json") << R"([{"r": [[0],[1,0]]}, {}])";
  EXPECT_EQ(made(folder_ / "own.json"), 1);
  std::ofstream(folder_ / "one.json") << R"([{"r": [[0],[1,0]]}])";
  EXPECT_EQ(made(folder_ / "one.json"), std::nullopt);
}

TEST_F(ModuleFileTest, ATileKernelNeedsNoNormalizers) {
  NpzFixture f = NpzFixture::make_tile();
  f.without = "config_runtime_normalizers";
  const Module module = read_module(write(f), kOwnTile);
  EXPECT_TRUE(module.has_times);
  EXPECT_EQ(module.dataset.target(0, 2), static_cast<double>(f.runtime[2]));
}

TEST_F(ModuleFileTest, RefusesDamageWithFileArrayAndIndex) {
  NpzFixture f = NpzFixture::layout();
  f.features[20] = std::numeric_limits<float>::quiet_NaN();
  EXPECT_THAT(error_of(f), HasSubstr("net.npz: node_config_feat[0, 1, 2] is nan"));
  f = many_configs(2'000, 1'000'000);
  f.features[40] = std::numeric_limits<float>::infinity();
  EXPECT_THAT(error_of(f), HasSubstr("net.npz: node_config_feat[1, 0, 4] is inf"));
  f = NpzFixture::make_tile();
  f.features[24] = std::numeric_limits<float>::quiet_NaN();
  EXPECT_THAT(error_of(f), HasSubstr("net.npz: config_feat[1, 0] is nan"));
}

TEST_F(ModuleFileTest, RefusesRunTimesOfSomeConfigurationsAlone) {
  NpzFixture f = NpzFixture::layout();
  f.runtime[4] = 0;
  EXPECT_THAT(error_of(f), HasSubstr("net.npz: config_runtime[4] = 0 is not a run time"));
  f.runtime[4] = -5;
  EXPECT_THAT(error_of(f), HasSubstr("net.npz: config_runtime[4] = -5 is negative"));
}

TEST_F(ModuleFileTest, SaysSoWhereTheGraphIsOfTheOtherKind) {
  const auto layout = write(NpzFixture::layout()), tile = write(NpzFixture::make_tile());
  EXPECT_THROW(read_module(layout, kOwnTile), DataError);
  EXPECT_THAT(message_of<DataError>([&] { read_module(tile, kOwnLayout); }),
              HasSubstr("rank it with a run of tile graphs"));
}

}  // namespace
}  // namespace tpudist::test
