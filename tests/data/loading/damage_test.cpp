// Seeded damages of everything that a data set is read from: each is an error of one line that
// names the file, or the data are as they were. TPUDIST_DAMAGES says how many of each kind.

#include <gtest/gtest.h>

#include <functional>

#include "core/hash.hpp"
#include "core/log.hpp"
#include "tests/data/loading/dataset_case.hpp"
#include "tests/support/damage.hpp"

namespace tpudist::test {
namespace {

namespace fs = std::filesystem;

template <typename T>
void add_to(Hasher& hasher, const T& values) {
  hasher.update(static_cast<std::uint64_t>(values.size()));
  hasher.update(std::as_bytes(std::span(values)));
}

// Everything that a data set tells.
std::uint64_t content_of(const Dataset& dataset) {
  Hasher hasher;
  hasher.update(dataset.selection_hash());
  for (int g = 0; g < dataset.size(); ++g) {
    const Graph& graph = dataset.graph(g);
    hasher.update(std::string_view(graph.name));
    add_to(hasher, graph.node_features);
    add_to(hasher, graph.opcodes);
    add_to(hasher, graph.edge_index);
    add_to(hasher, graph.config_nodes);
    add_to(hasher, graph.node_splits);
    add_to(hasher, dataset.run_times(g).runtime);
    add_to(hasher, dataset.run_times(g).group);
    const Slate slate = dataset.slate(g, all_rows(dataset, g));
    add_to(hasher, slate.configs);
    add_to(hasher, slate.targets);
    add_to(hasher, slate.states);
    add_to(hasher, slate.local_states);
    add_to(hasher, dataset.states(g).features);
  }
  return hasher.digest();
}

class DamageTest : public DatasetTest {
 protected:
  void SetUp() override {
    spdlog::set_level(spdlog::level::off);  // a cache that is made anew says so
    add(many_configs(12'000, 60), "byte_codes");
    add(never_equal_configs(300), "no_codes");
    for (const std::string name : {"kernel_a", "kernel_b"}) add(NpzFixture::make_tile(), name);
    convert_all();
  }
  void TearDown() override {
    spdlog::set_level(spdlog::level::info);
    fmt::print("damages: {} found, {} harmless\n", found_, harmless_);
  }

  DatasetOptions options_of(std::uint64_t seed) {
    DatasetOptions result = options(seed % 5 == 0 ? kTile : kLayout);
    result.cache = seed % 2 ? CacheMode::stream : CacheMode::memory;
    result.cache_bytes = 0;
    result.duplicates = DuplicatesPolicy::min;
    return result;
  }

  // Damages `file` once and reads the data by `read`.
  void try_damage(std::uint64_t seed, const fs::path& file, std::uint64_t expected,
                  const std::function<std::uint64_t()>& read) {
    SCOPED_TRACE(fmt::format("seed {} of {}", seed, file.filename().string()));
    const std::string sound = read_text_file(file);
    overwrite(file, damaged(sound, seed));
    try {
      EXPECT_EQ(read(), expected) << "the damage was not found";
      ++harmless_;
    } catch (const Error& error) {
      EXPECT_EQ(fault_of_message(error.what(), file), "");
      EXPECT_EQ(error.kind(), ErrorKind::data) << error.what();
      ++found_;
    }
    overwrite(file, sound);
  }

  void try_damage_before_opening(std::uint64_t seed, const fs::path& file,
                                 const DatasetOptions& options) {
    const auto read = [&] { return content_of(Dataset::open(options, pool_)); };
    try_damage(seed, file, read(), read);
  }

  int found_ = 0, harmless_ = 0;
};

TEST_F(DamageTest, OfShardsIsFoundWhenTheyAreOpened) {
  const int count = damage_count(80);
  for (int seed = 0; seed < count; ++seed) {
    const DatasetOptions options = options_of(seed);
    const auto entries = list_graphs(options.shards, options.collection);
    try_damage_before_opening(seed, entries[seed % entries.size()].shard, options);
  }
  EXPECT_EQ(found_, count);  // all of them
}

// A disk that goes bad while a run streams from it.
TEST_F(DamageTest, OfShardsIsFoundWhileTheyAreRead) {
  const int count = damage_count(80);
  for (int seed = 0; seed < count; ++seed) {
    DatasetOptions options = options_of(seed);
    options.cache = CacheMode::stream;
    const std::uint64_t expected = content_of(Dataset::open(options, pool_));
    const Dataset dataset = Dataset::open(options, pool_);  // has read no chunk yet
    const auto& entry = dataset.entry(seed % dataset.size());
    try_damage(seed, entry.shard, expected, [&] { return content_of(dataset); });
  }
  EXPECT_EQ(found_ + harmless_, count);
  EXPECT_GT(found_, count / 8);
}

TEST_F(DamageTest, OfManifestsIsFound) {
  const int count = damage_count(200);
  for (int seed = 0; seed < count; ++seed) {
    const DatasetOptions options = options_of(seed);
    const fs::path folder = fs::absolute(options.shards / options.collection.folder());
    try_damage_before_opening(seed, folder / kManifestName, options);
  }
  EXPECT_GT(found_, count * 9 / 10);
}

// A cache is made anew, so that nothing is lost.
TEST_F(DamageTest, OfCachesIsMended) {
  const TempDir place;
  const int count = damage_count(80);
  for (int seed = 0; seed < count; ++seed) {
    DatasetOptions options = options_of(seed);
    options.node_cache = NodeCacheOptions::of(place.path().string(), std::uint64_t{1} << 30);
    options.node_cache.keep = false;
    const Dataset first = Dataset::open(options, pool_);
    const std::uint64_t expected = content_of(first);
    const fs::path folder = fs::directory_iterator(place.path())->path();
    const fs::path file = fs::directory_iterator(folder)->path();
    const fs::path copy = file.string() + ".copy";
    fs::rename(file, copy);  // the one that is mapped
    fs::copy_file(copy, file);
    SCOPED_TRACE(seed);
    overwrite(file, damaged(read_text_file(file), seed));
    const Dataset second = Dataset::open(options, pool_);
    EXPECT_EQ(content_of(second), expected);
    EXPECT_GT(second.shared_bytes(), 0u);
    ++found_;
    fs::remove(copy);
  }
}

}  // namespace
}  // namespace tpudist::test
