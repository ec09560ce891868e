#include "data/shards/manifest.hpp"

#include <gmock/gmock.h>
#include <sys/stat.h>

#include <fstream>
#include <limits>

#include "core/error.hpp"
#include "tests/support/another_user.hpp"
#include "tests/support/temp_dir.hpp"
#include "tests/support/thrown.hpp"

namespace tpudist::test {
namespace {

using ::testing::HasSubstr;

const Collection kCollection{"layout:nlp:random"};

Manifest example() {
  GraphSummary graph;
  graph.name = "bert \"x\" ü";
  graph.group = "/graphs/000000";
  graph.source = {"layout/nlp/random/train/bert.npz", 12345678901, 0xfedcba9876543210};
  graph.nodes = 876;
  graph.edges = 1000;
  graph.configs = 100040;
  graph.config_nodes = 20;
  graph.distinct_configs = 90000;
  graph.coded = true;
  graph.config_type = "u16";
  graph.states = 300;
  graph.max_states_per_node = 257;
  graph.float_bytes = std::numeric_limits<std::int64_t>::max();
  graph.memory_bytes = 5;
  graph.stored_bytes = 6;
  return {kCollection,
          {{"train/shard-00000.h5", "train", 99, 0x00000000000000ff, {graph}}},
          {{"layout/nlp/random/train/bad.npz", "bad.npz: no good"}}};
}

class ManifestTest : public ::testing::Test {
 protected:
  std::string error_of(const std::string& text) {
    write_file_atomically(path_, text);
    return message_of<DataError>([&] { read_manifest(path_, kCollection); });
  }
  TempDir folder_;
  const std::filesystem::path path_ = folder_ / "manifest.json";
};

TEST_F(ManifestTest, RoundTrip) {
  write_manifest(example(), path_);
  const Manifest read = read_manifest(path_, kCollection);
  ASSERT_EQ(read.shards.size(), 1u);
  EXPECT_EQ(read.shards[0].hash, 0xffu);
  EXPECT_EQ(read.shards[0].bytes, 99u);
  const GraphSummary graph = read.shards[0].graphs.at(0), expected = example().shards[0].graphs[0];
  EXPECT_EQ(graph.name, expected.name);
  EXPECT_EQ(graph.source.path, expected.source.path);
  EXPECT_EQ(graph.source.bytes, expected.source.bytes);
  EXPECT_EQ(graph.source.hash, expected.source.hash);
  EXPECT_EQ(graph.configs, expected.configs);
  EXPECT_EQ(graph.coded, true);
  EXPECT_EQ(graph.config_type, "u16");
  EXPECT_EQ(graph.max_states_per_node, 257);
  EXPECT_EQ(graph.float_bytes, expected.float_bytes);
  ASSERT_EQ(read.skipped.size(), 1u);
  EXPECT_EQ(read.skipped[0].error, "bad.npz: no good");

  const std::string first = read_text_file(path_);
  write_manifest(read, path_);
  EXPECT_EQ(read_text_file(path_), first);
}

TEST_F(ManifestTest, RefusesWhatIsNotAManifestOfTheCollection) {
  write_manifest(example(), path_);
  const std::string good = read_text_file(path_);
  EXPECT_EQ(error_of(good), "");
  EXPECT_THROW(read_manifest(path_, {"tile:xla"}), DataError);
  EXPECT_THROW(read_manifest(folder_ / "none.json", kCollection), DataError);
  const auto with = [&](std::string from, std::string to) {
    std::string text = good;
    text.replace(text.find(from), from.size(), to);
    return error_of(text);
  };
  EXPECT_THAT(with("\"version\": 1", "\"version\": 2"), HasSubstr("is not a manifest"));
  EXPECT_THAT(with("\"nodes\"", "\"knots\""), HasSubstr("is not a manifest (it has no \"nodes\")"));
  EXPECT_THAT(with("876", "\"many\""), HasSubstr(": type must be number, but is string)"));
  EXPECT_THAT(with("876", "1.5"), HasSubstr(": is no whole number)"));
  // As versions before the manifest's own hash wrote it.
  EXPECT_THAT(with(",\n \"xxh3\"", ",\n \"none\""), HasSubstr("key 'xxh3' not found"));
  EXPECT_THAT(with("fedcba9876543210", "no hash"), HasSubstr("is not a manifest"));
  EXPECT_THAT(error_of(good.substr(0, good.size() / 2)), HasSubstr("is not a manifest"));
}

TEST_F(ManifestTest, KnowsItsOwnHash) {
  write_manifest(example(), path_);
  const std::string good = read_text_file(path_);
  EXPECT_EQ(error_of(good), "");
  EXPECT_EQ(error_of(good + "\n"), "");  // says the same
  for (const std::string word :
       {"bert", "u16", "876", "fedcba9876543210", "no good", "xxh3", "skipped", "created_by"}) {
    std::string text = good;
    const std::size_t at = text.rfind(word);
    text[at] = text[at] == '7' ? '6' : '7';
    EXPECT_THAT(error_of(text), HasSubstr("convert again")) << word;
  }
  std::string text = good;
  text.replace(text.find("u16"), 3, "u8");
  EXPECT_EQ(error_of(text),
            path_.string() + ": was changed or is damaged, by its own hash; convert again");
}

TEST_F(ManifestTest, AShardMustBeThereInItsSize) {
  const Manifest::Shard shard{"x.h5", "train", 3, 0, {}};
  EXPECT_THROW(check_shard_present(folder_.path(), shard), DataError);
  write_file_atomically(folder_ / "x.h5", "four");
  EXPECT_THROW(check_shard_present(folder_.path(), shard), DataError);
  write_file_atomically(folder_ / "x.h5", "abc");
  EXPECT_NO_THROW(check_shard_present(folder_.path(), shard));
  // Where it may not be looked at, nothing is known of it.
  std::filesystem::permissions(folder_.path(), std::filesystem::perms::none);
  {
    const AnotherUser reader;
    EXPECT_THROW(check_shard_present(folder_.path(), shard), IoError);
  }
  std::filesystem::permissions(folder_.path(), std::filesystem::perms::owner_all);
}

TEST_F(ManifestTest, IsMissingWhereAPipeHasItsName) {
  ASSERT_EQ(::mkfifo(path_.c_str(), 0600), 0);  // that nobody writes
  EXPECT_THAT(message_of<DataError>([&] { read_manifest(path_, kCollection); }),
              HasSubstr("is missing"));
}

void add_manifest(const std::filesystem::path& folder) {
  std::filesystem::create_directories(folder);
  std::ofstream(folder / "manifest.json") << "{}";
}

std::string refusal(const std::filesystem::path& root, const std::string& collection) {
  return message_of<ConfigError>(
      [&] { require_shards(root, Collection::parse(collection), "give --data"); });
}

TEST(ConvertedCollections, AreThoseWithAManifest) {
  const TempDir root;
  add_manifest(root / "layout/own/v1");
  add_manifest(root / "layout/xla/random");
  std::filesystem::create_directories(root / "layout/xla/default/train");
  const auto found = converted_collections(root.path());
  ASSERT_EQ(found.size(), 2u);
  EXPECT_EQ(found[0].name, "layout:xla:random");
  EXPECT_EQ(found[1].name, "layout:own:v1");
}

TEST(ConvertedCollections, AMissingOneIsRefusedWithTheNearestThatIsThere) {
  const TempDir root;
  add_manifest(root / "layout/own/v1");
  EXPECT_EQ(refusal(root.path(), "layout:own:v1"), "");
  EXPECT_EQ(refusal(root.path(), "layout:own:v2"),
            root.path().string() +
                ": holds no shards of layout:own:v2 (did you mean layout:own:v1, which is there?); "
                "give --data");
  EXPECT_THAT(refusal(root.path(), "tile:xla"),
              HasSubstr("holds no shards of tile:xla (there are layout:own:v1); give --data"));
  EXPECT_THAT(refusal(root / "none", "tile:xla"), HasSubstr("no such folder of shards"));
}

}  // namespace
}  // namespace tpudist::test
