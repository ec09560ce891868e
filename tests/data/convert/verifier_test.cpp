#include "data/convert/verifier.hpp"

#include <gmock/gmock.h>

#include <functional>

#include "core/error.hpp"
#include "tests/data/npz/npz_fixture.hpp"
#include "tests/data/shards/test_shards.hpp"
#include "tests/support/converted.hpp"
#include "tests/support/temp_dir.hpp"

namespace tpudist::test {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class VerifierTest : public ::testing::Test {
 protected:
  VerifierTest() {
    NpzFixture::layout().write(npz_ / "layout/xla/random/train/x.npz");
    convert_npz(folder_.path());
  }

  std::vector<std::string> problems(bool with_sources = true) {
    NoProgress progress;
    VerifyOptions options{shards_, std::nullopt, 1};
    if (with_sources) options.npz_root = npz_;
    return verify(options, progress).at(0).problems;
  }

  // Overwrites a dataset and makes the manifest agree with the changed file.
  template <typename T>
  void forge(const std::string& dataset, const std::vector<T>& values) {
    overwrite_dataset(shard_, dataset, values);
    update_manifest(shards_, kLayout);
  }

  TempDir folder_;
  const std::filesystem::path npz_ = folder_ / "npz", shards_ = folder_ / "shards",
                              manifest_ = shards_ / "layout/xla/random/manifest.json",
                              shard_ = shards_ / "layout/xla/random/train/shard-00000.h5";
};

TEST_F(VerifierTest, FindsNothingInSoundShards) {
  EXPECT_THAT(problems(), IsEmpty());
  EXPECT_THAT(problems(false), IsEmpty());
}

TEST_F(VerifierTest, FindsACodeWithoutAState) {
  forge<std::uint8_t>("config_codes", {0, 0, 1, 1, 0, 0, 2, 4, 3, 3, 0, 0});
  EXPECT_THAT(problems(false),
              ElementsAre(HasSubstr("config_codes[3, 1] = 4, but the node has 4 states")));
}

TEST_F(VerifierTest, FindsAnotherConfigurationThanTheSources) {
  forge<std::uint8_t>("config_codes", {0, 0, 1, 1, 0, 0, 3, 3, 2, 2, 0, 0});
  EXPECT_THAT(problems(false), IsEmpty());
  EXPECT_THAT(problems(), ElementsAre(HasSubstr("configurations from 0: differs")));
}

TEST_F(VerifierTest, FindsWrongGroupsRunTimesAndNodes) {
  forge<std::int32_t>("config_group", {0, 1, 0, 2, 3, 4});
  EXPECT_THAT(problems(false),
              ElementsAre(HasSubstr("distinct_configs is 4 in the manifest, but 5 in the shard")));
  forge<std::int32_t>("config_group", {0, 1, 0, 2, 3, 1});
  EXPECT_THAT(problems(false), ElementsAre(HasSubstr("config_group: does not say")));
  forge<std::int32_t>("config_group", {0, 1, 0, 2, 3, 0});
  forge<std::int64_t>("runtime", {100, 300, 101, 400, 500, 103});
  EXPECT_THAT(problems(false), IsEmpty());
  EXPECT_THAT(problems(),
              ElementsAre(HasSubstr("runtime: differs from the NPZ file at element 5")));
  forge<std::int64_t>("runtime", {100, 300, 101, 400, -500, 102});
  EXPECT_THAT(problems(false), ElementsAre(HasSubstr("runtime: value -500 of element 4")));
  forge<std::int32_t>("config_nodes", {1, 1});
  EXPECT_THAT(problems(false), ElementsAre(HasSubstr("config_nodes: has node 1 twice")));
  forge<std::int32_t>("config_nodes", {1, 5});
  EXPECT_THAT(problems(false), ElementsAre(HasSubstr("config_nodes: value 5 of element 1")));
}

// Every field of a graph in the manifest is compared with the shard, and its totals are compared
// with each other.
TEST_F(VerifierTest, FindsAManifestThatDiffersFromItsShards) {
  using Graph = GraphSummary;
  const std::vector<std::pair<const char*, std::function<void(Graph&)>>> changes = {
      {"name is \"y\" in the manifest, but \"x\" in the shard", [](Graph& g) { g.name = "y"; }},
      {"source is", [](Graph& g) { g.source.path = "layout/xla/random/train/y.npz"; }},
      {"source_bytes is 1", [](Graph& g) { g.source.bytes = 1; }},
      {"source_xxh3 is", [](Graph& g) { ++g.source.hash; }},
      {"nodes is 6 in the manifest, but 5", [](Graph& g) { ++g.nodes; }},
      {"edges is 5", [](Graph& g) { ++g.edges; }},
      {"config_nodes is 3", [](Graph& g) { ++g.config_nodes; }},
      {"distinct_configs is 5", [](Graph& g) { ++g.distinct_configs; }},
      {"coded is false", [](Graph& g) { g.coded = false; }},
      {"config_type is \"u16\"", [](Graph& g) { g.config_type = "u16"; }},
      {"states is", [](Graph& g) { ++g.states; }},
      {"max_states_per_node is", [](Graph& g) { ++g.max_states_per_node; }},
      {"float_bytes is", [](Graph& g) { ++g.float_bytes; }},
      {"memory_bytes is", [](Graph& g) { ++g.memory_bytes; }},
      {"stored_bytes is", [](Graph& g) { ++g.stored_bytes; }},
      {"configs is 7", [](Graph& g) { ++g.configs; }}};
  const Manifest sound = read_manifest(manifest_, kLayout);
  for (const auto& [text, change] : changes) {
    Manifest manifest = sound;
    change(manifest.shards[0].graphs[0]);
    write_manifest(manifest, manifest_);
    EXPECT_THAT(problems(false), ElementsAre(HasSubstr(text)));
  }
}

TEST_F(VerifierTest, FindsShardsThatAreListedWrongly) {
  const Manifest sound = read_manifest(manifest_, kLayout);
  Manifest manifest = sound;
  manifest.shards[0].split = "valid";
  write_manifest(manifest, manifest_);
  EXPECT_THAT(problems(false),
              ElementsAre(HasSubstr("shard train/shard-00000.h5 is not in the folder valid"),
                          HasSubstr("split is \"valid\" in the manifest, but \"train\" in")));
  manifest = sound;
  manifest.shards.push_back(sound.shards[0]);
  write_manifest(manifest, manifest_);
  EXPECT_THAT(problems(false), ElementsAre(HasSubstr("lists train/shard-00000.h5 twice"),
                                           HasSubstr("two graphs of the name x in train")));
  manifest = sound;
  manifest.shards[0].graphs.clear();
  write_manifest(manifest, manifest_);
  EXPECT_THAT(problems(false), ElementsAre(HasSubstr("number of graphs is 0 in the manifest")));
  write_manifest(sound, manifest_);
  std::string text = read_text_file(manifest_);
  text.replace(text.find("\"configs\": 6"), 12, "\"configs\": 7");
  write_file_atomically(manifest_, text);
  EXPECT_THAT(problems(false), ElementsAre(HasSubstr("was changed or is damaged")));
  text = text.substr(0, text.rfind(",\n \"xxh3\"")) + "\n}\n";
  text.insert(text.size() - 3, ",\n \"xxh3\": \"" + to_hex(hash64(text)) + "\"");
  write_file_atomically(manifest_, text);
  EXPECT_THAT(problems(false), ElementsAre(HasSubstr("counts are not the sums")));
}

TEST_F(VerifierTest, FindsAShardThatNoManifestLists) {
  for (const char* name : {"shard-00000b.h5", "shard-00001.h5"})  // of a conversion cut short
    std::filesystem::copy(shard_, shards_ / "layout/xla/random/train" / name);
  EXPECT_THAT(problems(), IsEmpty());
  std::filesystem::copy(shard_, shards_ / "layout/xla/random/train/mine.h5");
  EXPECT_THAT(problems(), ElementsAre(HasSubstr("mine.h5: is not in the manifest; remove it")));
}

TEST_F(VerifierTest, FindsMissingFilesOnBothSides) {
  NpzFixture::layout().write(npz_ / "layout/xla/random/train/new.npz");
  EXPECT_THAT(problems(), ElementsAre(HasSubstr("new.npz: has not been converted")));
  std::filesystem::remove(npz_ / "layout/xla/random/train/new.npz");
  std::filesystem::remove(npz_ / "layout/xla/random/train/x.npz");
  EXPECT_THAT(problems(), ElementsAre(HasSubstr("x.npz is missing")));
  std::filesystem::remove(shard_);
  EXPECT_THAT(problems(false), ElementsAre(HasSubstr("shard-00000.h5 is missing")));
  std::filesystem::remove(manifest_);
  EXPECT_THAT(problems(false), ElementsAre(HasSubstr("manifest.json is missing")));
  std::filesystem::remove_all(shards_ / "layout");
  EXPECT_THROW(problems(), ConfigError);
}

TEST_F(VerifierTest, FindsAManifestThatIsNone) {
  for (const char* text : {"", "{}", "[1, 2]", "{\"format\": \"tpudist-manifest\"}"}) {
    write_file_atomically(manifest_, text);
    EXPECT_THAT(problems(), ElementsAre(HasSubstr("is not a manifest"))) << text;
  }
}

}  // namespace
}  // namespace tpudist::test
