#include "data/synth/synth.hpp"

#include <gmock/gmock.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <map>
#include <set>

#include "core/error.hpp"
#include "core/file_system.hpp"
#include "core/folder_lock.hpp"
#include "data/convert/graph_schema.hpp"
#include "data/npz/npz_reader.hpp"
#include "statistics/ranking/metrics.hpp"
#include "tests/data/npz/read_integers.hpp"
#include "tests/support/temp_dir.hpp"
#include "tests/support/thrown.hpp"

namespace tpudist::test {
namespace {

using ::testing::HasSubstr;

std::vector<SynthFile> make(const std::filesystem::path& root, SynthOptions options = {}) {
  if (options.preset == "demo") options.preset = "tiny";
  NoProgress progress;
  return synthesise(options, root, progress);
}

Collection collection_of(const SynthFile& file) {
  for (const std::string& name : Collection::tpugraphs_names()) {
    const Collection collection = Collection::parse(name);
    if (file.path.string().starts_with(collection.folder().string() + "/")) return collection;
  }
  ADD_FAILURE() << file.path << " is in no collection's folder";
  return Collection::parse("tile:xla");
}

std::string split_of(const SynthFile& file) {
  return file.path.parent_path().filename().string();
}

// The last `count` elements of a member of doubles, most of which float32 does not hold.
std::vector<double> doubles_of(const std::filesystem::path& path, std::string_view name,
                               std::int64_t count) {
  const ZipArchive archive(path);
  for (std::size_t i = 0; i < archive.members().size(); ++i) {
    if (archive.members()[i].name != name) continue;
    std::vector<std::byte> bytes(archive.members()[i].bytes);
    archive.open(i).read(bytes);
    std::vector<double> values(static_cast<std::size_t>(count));
    const std::size_t size = values.size() * sizeof(double);
    std::memcpy(values.data(), bytes.data() + bytes.size() - size, size);
    return values;
  }
  ADD_FAILURE() << path << " has no " << name;
  return {};
}

// One tiny data set, shared by the tests that only read.
class SynthFiles : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    folder_ = new TempDir;
    SynthOptions options;
    options.truth = *folder_ / "truth";
    files_ = make(root(), options);
  }
  static void TearDownTestSuite() { delete folder_; }
  static std::filesystem::path root() { return *folder_ / "npz"; }

  static inline TempDir* folder_ = nullptr;
  static inline std::vector<SynthFile> files_;
};

TEST_F(SynthFiles, allCollectionsAndSplitsAreThere) {
  std::map<std::string, int> graphs;
  for (const SynthFile& file : files_) ++graphs[collection_of(file).name + " " + split_of(file)];
  EXPECT_EQ(graphs.size(), 15u);
  for (const std::string& name : Collection::tpugraphs_names()) {
    EXPECT_GE(graphs[name + " train"], 4) << name;
    EXPECT_EQ(graphs[name + " valid"], 2) << name;
    EXPECT_EQ(graphs[name + " test"], 2) << name;
  }
}

TEST_F(SynthFiles, everyFileKeepsTheSchema) {
  for (const SynthFile& file : files_) {
    const NpzReader npz(root() / file.path);
    const Collection collection = collection_of(file);
    const GraphSizes sizes = read_graph_sizes(npz, collection);
    EXPECT_EQ(sizes.configs, file.configs);
    EXPECT_EQ(sizes.config_nodes, file.config_nodes);
    const Graph graph = read_graph(npz, collection, sizes);
    EXPECT_LE(graph.nodes, 60);
    EXPECT_EQ(graph.edges, file.edges);
    EXPECT_EQ(npz.contains("node_splits"), !collection.is_tile()) << file.path;
    const RunTimes times = read_run_times(npz, collection, split_of(file), sizes);
    const bool is_test = split_of(file) == "test";
    for (const std::int64_t time : times.runtime) EXPECT_EQ(time == 0, is_test) << file.path;
    if (is_test) {
      for (const std::int64_t normalizer : times.normalizer) EXPECT_EQ(normalizer, 1);
    }
  }
}

TEST_F(SynthFiles, typesAreThoseOfTheRealFiles) {
  const std::map<std::string, std::string> real{{"node_feat", "<f4"},
                                                {"node_opcode", "|u1"},
                                                {"edge_index", "<i8"},
                                                {"node_config_ids", "<i8"},
                                                {"node_config_feat", "<f4"},
                                                {"config_runtime", "<i8"},
                                                {"node_splits", "<i8"},
                                                {"config_feat", "<f4"},
                                                {"config_runtime_normalizers", "<i8"}};
  for (const SynthFile& file : {files_.front(), files_.back()}) {
    const NpzReader npz(root() / file.path);
    for (const std::string& name : npz.names()) {
      EXPECT_EQ(npz.open(name).header().descr, real.at(name)) << name;
    }
    EXPECT_EQ(npz.names().size(), collection_of(file).is_tile() ? 6u : 7u);
  }
}

TEST_F(SynthFiles, configurationsAreWholeNumbersWithinTheirRange) {
  for (const SynthFile& file : files_) {
    const NpzReader npz(root() / file.path);
    const Collection collection = collection_of(file);
    NpzArray array = open_config_features(npz, collection);
    const auto [low, high] = collection.is_tile() ? std::pair(0.0f, 1e9f) : std::pair(-1.0f, 5.0f);
    for (const float value : array.read_floats()) {
      ASSERT_EQ(value, std::floor(value)) << file.path;
      ASSERT_TRUE(value >= low && value <= high) << file.path << ": " << value;
    }
  }
}

TEST_F(SynthFiles, randomAndDefaultHoldTheSameGraphsWithOtherConfigurations) {
  int compared = 0;
  for (const SynthFile& file : files_) {
    std::string other = file.path.string();
    const auto at = other.find("/random/");
    if (at == std::string::npos) continue;
    other.replace(at, 8, "/default/");
    const NpzReader a(root() / file.path), b(root() / other);
    for (const char* same : {"node_config_ids", "edge_index", "node_opcode"}) {
      EXPECT_EQ(read_integers(a.open(same)), read_integers(b.open(same))) << other;
    }
    EXPECT_EQ(a.open("node_feat").read_floats(), b.open("node_feat").read_floats());
    EXPECT_NE(a.open("node_config_feat").read_floats(), b.open("node_config_feat").read_floats());
    ++compared;
  }
  EXPECT_EQ(compared, 18);
}

TEST_F(SynthFiles, truthOfTheTestSplitLiesApart) {
  int found = 0;
  for (const SynthFile& file : files_) {
    const auto path = *folder_ / "truth" / file.path;
    ASSERT_EQ(std::filesystem::exists(path), split_of(file) == "test") << path;
    if (split_of(file) != "test") continue;
    ++found;
    const NpzReader npz(path);
    const auto measured = read_integers(npz.open("config_runtime"));
    const auto time = doubles_of(path, "config_time.npy", file.configs);
    ASSERT_EQ(std::ssize(measured), file.configs);
    for (std::size_t i = 0; i < time.size(); ++i) {
      EXPECT_GT(measured[i], 0);
      EXPECT_NEAR(static_cast<double>(measured[i]) / time[i], 1, 0.025);  // 6 sigma of 0.4 %
    }
    const std::vector<double> target(measured.begin(), measured.end());
    EXPECT_EQ(file.ceiling, collection_of(file).is_tile() ? tile_score(time, target)
                                                          : kendall_tau_b(time, target));
    EXPECT_GT(file.ceiling, 0.5) << path;
    EXPECT_LE(file.ceiling, 1) << path;
  }
  EXPECT_EQ(found, 10);
}

// The configurations of a layout file as states of its operations.
std::vector<std::vector<LayoutState>> configs_of(const std::filesystem::path& npz,
                                                 const SynthFile& file) {
  const std::vector<float> features = NpzReader(npz).open("node_config_feat").read_floats();
  std::vector<std::vector<LayoutState>> configs(
      static_cast<std::size_t>(file.configs),
      std::vector<LayoutState>(static_cast<std::size_t>(file.config_nodes)));
  auto value = features.begin();
  for (auto& config : configs) {
    for (LayoutState& state : config) {
      for (std::int8_t& dimension : state) dimension = static_cast<std::int8_t>(*value++);
    }
  }
  return configs;
}

TEST_F(SynthFiles, trueTimesAreThoseOfTheLaw) {
  int found = 0;
  for (const SynthFile& file : files_) {
    const auto npz = root() / file.path;
    if (collection_of(file).is_tile()) {
      EXPECT_THROW(true_times(npz, {}), ConfigError);
    } else if (split_of(file) == "test") {
      EXPECT_EQ(true_times(npz, configs_of(npz, file)),
                doubles_of(*folder_ / "truth" / file.path, "config_time.npy", file.configs));
      ++found;
    }
  }
  EXPECT_EQ(found, 8);
}

TEST_F(SynthFiles, trueTimesAreKnownOfNoOtherData) {
  const SynthFile& file = *std::ranges::find_if(
      files_, [](const SynthFile& own) { return own.path.string().starts_with("layout/xla/"); });
  auto configs = configs_of(root() / file.path, file);
  configs.resize(2);
  configs[1].back().fill(4);  // a state that no operation has
  EXPECT_THAT(message_of<DataError>([&] { true_times(root() / file.path, configs); }),
              HasSubstr("configuration 1 has layouts that no operation"));
  configs[1] = configs[0];
  configs[1].pop_back();
  EXPECT_THROW(true_times(root() / file.path, configs), DataError);
  EXPECT_THROW(true_times((root() / file.path).replace_filename("mine.npz"), {}), ConfigError);
  const TempDir folder;
  for (const char* recipe : {"{", "[]", "{}", "{\"generation\": 2}"}) {
    write_file_atomically(folder / "synth.json", recipe);
    EXPECT_THROW(true_times(folder / "valid/net.npz", {}), ConfigError) << recipe;
  }
}

TEST(Synth, refusesAFolderWithOtherData) {
  const TempDir folder;
  SynthOptions options;
  options.collections = {{"tile:xla"}};
  options.graphs = {1, 0, 0};
  std::filesystem::create_directories(folder / "tile/xla/train");  // empty folders do not matter
  const auto first = make(folder.path(), options);
  const std::string bytes = read_text_file(folder / first.at(0).path);
  EXPECT_EQ(make(folder.path(), options).size(), 1u);  // the same again
  options.seed = 2;
  EXPECT_THROW(make(folder.path(), options), ConfigError);
  EXPECT_TRUE(read_text_file(folder / first.at(0).path) == bytes);
  // Data that another generation made of the same options.
  options.seed = 1;
  std::string recipe = read_text_file(folder / "tile/xla/synth.json");
  recipe.replace(recipe.find("\"generation\": 3"), 15, "\"generation\": 2");
  write_file_atomically(folder / "tile/xla/synth.json", recipe);
  EXPECT_THROW(make(folder.path(), options), ConfigError);
  options.collections = {{"layout:xla:random"}};  // a collection that is not there yet
  EXPECT_EQ(make(folder.path(), options).size(), 1u);
  options.collections = {{"layout:nlp:random"}};
  std::filesystem::create_directories(folder / "layout/nlp/random/valid");
  write_file_atomically(folder / "layout/nlp/random/valid/mine.npz", "precious");
  EXPECT_THROW(make(folder.path(), options), ConfigError);
  EXPECT_EQ(read_text_file(folder / "layout/nlp/random/valid/mine.npz"), "precious");
  EXPECT_FALSE(std::filesystem::exists(folder / "layout/nlp/random/train"));
}

TEST(Synth, removesWhatAKilledRunLeft) {
  const TempDir folder;
  SynthOptions options;
  options.collections = {{"tile:xla"}};
  options.graphs = {1, 0, 0};
  std::filesystem::create_directories(folder / "tile/xla/train");
  const auto npz = folder / "tile/xla/train/k.npz.17-0-0badcafe.tmp.AbCdEf";
  const auto recipe = folder / "tile/xla/synth.json.17-0-0badcafe.tmp";
  write_file_atomically(recipe, "half");  // before the first file
  make(folder.path(), options);
  EXPECT_FALSE(std::filesystem::exists(recipe));
  write_file_atomically(npz, "half");
  make(folder.path(), options);
  EXPECT_FALSE(std::filesystem::exists(npz));
  const FolderLock lock(folder / "tile/xla", "tpudist synth");  // whose files are not left-overs
  write_file_atomically(npz, "half");
  EXPECT_THROW(make(folder.path(), options), InUseError);
  EXPECT_TRUE(std::filesystem::exists(npz));
}

TEST(Synth, filesDependOnTheSeedAndNotOnThreads) {
  const TempDir folder;
  SynthOptions options;
  const auto one = make(folder / "1", options);
  options.threads = 4;
  const auto four = make(folder / "4", options);
  options.seed = 2;
  const auto other = make(folder / "other", options);
  ASSERT_EQ(one.size(), four.size());
  int differing = 0;
  for (std::size_t i = 0; i < one.size(); ++i) {
    ASSERT_EQ(one[i].path, four[i].path);
    const std::string bytes = read_text_file(folder / "1" / one[i].path);
    EXPECT_EQ(bytes, read_text_file(folder / "4" / one[i].path)) << one[i].path;
    differing += bytes != read_text_file(folder / "other" / other[i].path);
  }
  EXPECT_EQ(differing, static_cast<int>(one.size()));
}

TEST(Synth, selectionAndCountsAreFollowed) {
  const TempDir folder;
  SynthOptions options;
  options.collections = {Collection::parse("layout:nlp:default"), Collection::parse("tile:xla")};
  options.graphs = {3, 0, 1};
  options.configs = 7;
  const auto files = make(folder.path(), options);
  EXPECT_EQ(files.size(), 8u);
  for (const SynthFile& file : files) {
    EXPECT_NE(split_of(file), "valid");
    EXPECT_LE(file.configs, 7);
    if (!collection_of(file).is_tile()) {
      EXPECT_EQ(file.configs, 7);
    }
  }
  EXPECT_FALSE(std::filesystem::exists(folder / "layout/xla"));
  EXPECT_FALSE(std::filesystem::exists(folder / "layout/nlp/random"));
}

TEST(Synth, wrongRequestsAreRefused) {
  const TempDir folder;
  const auto refused = [&](auto change) {
    SynthOptions options;
    options.preset = "tiny";
    change(options);
    NoProgress progress;
    EXPECT_THROW(synthesise(options, folder / "out", progress), ConfigError);
    EXPECT_FALSE(std::filesystem::exists(folder / "out"));
  };
  refused([](SynthOptions& o) { o.preset = "tinny"; });
  refused([](SynthOptions& o) { o.graphs = {1}; });
  refused([](SynthOptions& o) { o.graphs = {1, -1, 1}; });
  refused([](SynthOptions& o) { o.graphs = {0, 0, 0}; });
  refused([](SynthOptions& o) { o.configs = -1; });
  refused([](SynthOptions& o) {
    o.preset = "nlp";
    o.collections = {Collection::parse("tile:xla")};
  });
}

}  // namespace
}  // namespace tpudist::test
