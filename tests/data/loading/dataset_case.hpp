#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <string>
#include <vector>

#include "core/error.hpp"
#include "core/random.hpp"
#include "data/convert/converter.hpp"
#include "data/loading/dataset.hpp"
#include "tests/data/npz/npz_fixture.hpp"
#include "tests/data/shards/test_shards.hpp"
#include "tests/support/temp_dir.hpp"
#include "tests/support/thrown.hpp"

// Data sets of a few graphs for tests: NPZ files, converted.
namespace tpudist::test {

using Rows = std::vector<std::int64_t>;

// A layout graph with many configurations in random order, each measured about twice. Each node has
// `states` states.
inline NpzFixture many_configs(std::int64_t configs, int states) {
  NpzFixture f = NpzFixture::layout();
  CounterRng random(7);
  f.c = configs;
  f.features.clear();
  f.runtime.clear();
  std::vector<std::vector<float>> distinct;
  for (std::int64_t i = 0; i < (configs + 1) / 2; ++i) {
    std::vector<float> features(2 * kLayoutConfigFeatures);
    for (const std::size_t node : {0, 1}) {
      auto state = static_cast<int>(random.below(static_cast<std::uint64_t>(states)));
      for (std::size_t k = 0; k < kLayoutConfigFeatures; ++k, state /= 7)
        features[node * kLayoutConfigFeatures + k] = static_cast<float>(state % 7 - 1);
    }
    distinct.push_back(features);
  }
  for (std::int64_t i = 0; i < configs; ++i) {
    const auto& features = distinct[random.below(distinct.size())];
    f.features.insert(f.features.end(), features.begin(), features.end());
    f.runtime.push_back(1000 + static_cast<std::int64_t>(random.below(1000)));
  }
  return f;
}

// A layout graph whose configurations do not repeat, so that coding does not pay.
inline NpzFixture never_equal_configs(std::int64_t configs) {
  NpzFixture f = NpzFixture::layout();
  CounterRng random(8);
  f.c = configs;
  f.features.clear();
  f.runtime.clear();
  for (std::int64_t i = 0; i < configs * 2 * kLayoutConfigFeatures; ++i)
    f.features.push_back(static_cast<float>(random.below(7)) - 1);
  for (std::int64_t i = 0; i < configs; ++i) f.runtime.push_back(1000 + i);
  return f;
}

class DatasetTest : public ::testing::Test {
 protected:
  void add(const NpzFixture& fixture, const std::string& name, const std::string& split = "train") {
    fixture.write(folder_ / "npz" / fixture.collection().folder() / split / (name + ".npz"),
                  {.deflate_level = 1});
  }

  void convert_all(ConfigEncoder::Limits limits = {}) {
    NoProgress progress;
    ConvertOptions options;
    options.npz_root = folder_ / "npz";
    options.shard_root = folder_ / "shards";
    options.jobs = 1;
    options.limits = limits;
    for (const ConvertedCollection& result : convert(options, progress))
      ASSERT_TRUE(result.published);
  }

  DatasetOptions options(const Collection& collection = kLayout) const {
    DatasetOptions result;
    result.shards = folder_ / "shards";
    result.collection = collection;
    result.split = "train";
    return result;
  }

  Dataset open(DuplicatesPolicy duplicates = DuplicatesPolicy::keep,
               CacheMode cache = CacheMode::memory, const Collection& collection = kLayout) {
    DatasetOptions result = options(collection);
    result.duplicates = duplicates;
    result.cache = cache;
    return Dataset::open(result, pool_);
  }

  // The message of the ConfigError that opening throws.
  std::string open_error(const DatasetOptions& options) {
    return message_of<ConfigError>([&] { Dataset::open(options, pool_); });
  }

  // Stores the codes of a graph in chunks of another size.
  void rewrite_codes(const GraphEntry& entry, std::size_t chunk_bytes) {
    edit_shard(entry.shard, [&](const Hdf5Id& file) {
      const Hdf5Id group = open_group(file, entry.group, "shard");
      const auto codes = read_array<std::uint8_t>(group, "config_codes", {-1, -1}, "shard");
      ASSERT_GE(H5Ldelete(group.get(), "config_codes", H5P_DEFAULT), 0);
      Hdf5Dataset::create(group, "config_codes", ElementType::u8,
                          {entry.configs, entry.config_nodes}, "shard", chunk_bytes)
          .write_all(std::as_bytes(std::span(codes)), pool_);
    });
    update_manifest(folder_ / "shards", kLayout);
  }

  TempDir folder_;
  ThreadPool pool_{2};
};

inline Rows all_rows(const Dataset& dataset, int graph) {
  Rows rows(static_cast<std::size_t>(dataset.rows(graph)));
  std::iota(rows.begin(), rows.end(), 0);
  return rows;
}

// The features [K, nc, 18] or [K, 24] of a slate's states.
inline std::vector<float> features_of(const Dataset& dataset, const Slate& slate) {
  const bool own = !slate.local_states.empty();
  const std::span<const float> table =
      own ? std::span(slate.local_states) : std::span(dataset.states(slate.graph).features);
  const auto width = static_cast<std::size_t>(
      dataset.options().collection.is_tile() ? kTileConfigFeatures : kLayoutConfigFeatures);
  std::vector<float> features;
  for (const std::int32_t state : slate.states) {
    const auto begin = table.begin() + static_cast<std::ptrdiff_t>(state * width);
    features.insert(features.end(), begin, begin + static_cast<std::ptrdiff_t>(width));
  }
  return features;
}

// All that scores depend on is the same.
inline void expect_equal_data(const Dataset& found, const Dataset& expected) {
  ASSERT_EQ(found.size(), expected.size());
  for (int g = 0; g < found.size(); ++g) {
    const Graph &a = found.graph(g), &b = expected.graph(g);
    EXPECT_EQ(a.name, b.name);
    EXPECT_EQ(a.nodes, b.nodes);
    EXPECT_EQ(a.edges, b.edges);
    EXPECT_EQ(a.node_features, b.node_features);
    EXPECT_EQ(a.opcodes, b.opcodes);
    EXPECT_EQ(a.edge_index, b.edge_index);
    EXPECT_EQ(a.config_nodes, b.config_nodes);
    EXPECT_EQ(a.node_splits, b.node_splits);
    EXPECT_EQ(found.run_times(g).runtime, expected.run_times(g).runtime);
    EXPECT_EQ(found.run_times(g).normalizer, expected.run_times(g).normalizer);
    EXPECT_EQ(found.run_times(g).group, expected.run_times(g).group);
    EXPECT_EQ(found.coded(g), expected.coded(g));
    EXPECT_EQ(found.states(g).features, expected.states(g).features);
    EXPECT_EQ(found.states(g).offsets, expected.states(g).offsets);
    ASSERT_EQ(found.rows(g), expected.rows(g));
    const Slate x = found.slate(g, all_rows(found, g)), y = expected.slate(g, all_rows(found, g));
    EXPECT_EQ(x.configs, y.configs);
    EXPECT_EQ(x.targets, y.targets);
    EXPECT_EQ(x.states, y.states);
    EXPECT_EQ(x.local_states, y.local_states);
  }
}

// The features in the NPZ file for the slate's configurations.
inline std::vector<float> expected_features(const NpzFixture& fixture, const Slate& slate) {
  const std::size_t width = fixture.features.size() / static_cast<std::size_t>(fixture.c);
  std::vector<float> features;
  for (const std::int64_t config : slate.configs) {
    const auto begin = fixture.features.begin() + static_cast<std::ptrdiff_t>(config * width);
    features.insert(features.end(), begin, begin + static_cast<std::ptrdiff_t>(width));
  }
  return features;
}

}  // namespace tpudist::test
