#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "core/random.hpp"
#include "data/npz/npz_writer.hpp"

namespace tpudist::test {

// Graphs of a compiler other than XLA: other widths, with or without opcodes. A chain of 10 nodes
// with a skip, 60 configurations. The run time is exactly the sum over the configurable nodes
// (layout: 1, 4, 7) of the first node feature times the first configuration feature.
struct OwnFeatures {
  std::int64_t node_features = 7, config_features = 3;
  bool tile = false, opcodes = false;
  std::int64_t configs = 60;

  void write(const std::filesystem::path& path, std::uint64_t seed) const {
    constexpr std::int64_t kNodes = 10;
    const std::vector<std::int64_t> config_nodes = {1, 4, 7};
    CounterRng random(seed, 1);
    std::vector<float> nodes;
    for (std::int64_t i = 0; i < kNodes * node_features; ++i)
      nodes.push_back(static_cast<float>(1 + random.below(9)));
    std::vector<std::int64_t> edges = {9, 0}, runtime;
    for (std::int64_t v = 1; v < kNodes; ++v) edges.insert(edges.end(), {v, v - 1});
    const std::int64_t vectors = tile ? 1 : std::ssize(config_nodes);
    std::vector<float> features;
    for (std::int64_t c = 0; c < configs; ++c) {
      double time = 1000;
      for (std::int64_t j = 0; j < vectors; ++j) {
        for (std::int64_t k = 0; k < config_features; ++k)
          features.push_back(static_cast<float>(random.below(4)));
        const auto node = static_cast<std::size_t>(config_nodes[j] * node_features);
        time +=
            100.0 * (nodes.empty() ? 1 : nodes[node]) * features[features.size() - config_features];
      }
      runtime.push_back(static_cast<std::int64_t>(time));
    }
    std::filesystem::create_directories(path.parent_path());
    NpzWriter npz(path);
    npz.add("node_feat", {kNodes, node_features}, nodes);
    if (opcodes) npz.add("node_opcode", {kNodes}, std::vector<std::uint8_t>(kNodes, 200));
    npz.add("edge_index", {std::ssize(edges) / 2, 2}, edges);
    npz.add("config_runtime", {configs}, runtime);
    if (tile) {
      npz.add("config_runtime_normalizers", {configs}, std::vector<std::int64_t>(configs, 1000));
      npz.add("config_feat", {configs, config_features}, features);
    } else {
      npz.add("node_config_ids", {vectors}, config_nodes);
      npz.add("node_config_feat", {configs, vectors, config_features}, features);
    }
    npz.finish();
  }

  // Six graphs to train on, two to validate and one to test, below the collection's folder.
  void write_splits(const std::filesystem::path& folder) const {
    for (int i = 0; i < 6; ++i) write(folder / "train" / ("a" + std::to_string(i) + ".npz"), 1 + i);
    for (int i = 0; i < 2; ++i)
      write(folder / "valid" / ("b" + std::to_string(i) + ".npz"), 11 + i);
    write(folder / "test" / "c0.npz", 21);
  }
};

}  // namespace tpudist::test
